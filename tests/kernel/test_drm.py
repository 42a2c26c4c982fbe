"""Clients of GPUs, as i915, xe and amdgpu show them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobmeter.kernel.drm import DrmClient, parse_fdinfo, read_clients
from jobmeter.kernel.machine import Machine
from tests.sysfs import write_files

I915 = b"""\
pos:\t0
flags:\t02100002
drm-driver:\ti915
drm-client-id:\t42
drm-pdev:\t0000:00:02.0
drm-total-system0:\t125 MiB
drm-resident-system0:\t96 KiB
drm-engine-render:\t2500000000 ns
drm-engine-copy:\t0 ns
drm-engine-video:\t100 ns
drm-engine-capacity-video:\t2
"""
XE = b"""\
drm-driver:\txe
drm-client-id:\t3
drm-pdev:\t0000:03:00.0
drm-resident-gtt:\t192 KiB
drm-resident-vram0:\t23992 KiB
drm-cycles-rcs:\t28257900
drm-total-cycles-rcs:\t7655183225
drm-cycles-ccs:\t0
drm-total-cycles-ccs:\t7655183225
drm-engine-capacity-ccs:\t4
"""
OLD_AMDGPU = b"""\
drm-driver:\tamdgpu
drm-pdev:\t0000:0b:00.0
drm-client-id:\t7
drm-memory-vram:\t4096 KiB
drm-memory-gtt: \t16 KiB
drm-engine-gfx:\t1000000 ns
drm-engine-compute:\t3000000000 ns
"""


@pytest.mark.parametrize(
    ("text", "client"),
    [
        (I915, DrmClient("i915", "0000:00:02.0", 42, {"render": 2.5, "copy": 0.0, "video": 1e-7}, {}, 0, 96 << 10)),
        (
            XE,
            DrmClient(
                "xe", "0000:03:00.0", 3, {}, {"rcs": (28257900, 7655183225), "ccs": (0, 7655183225)},
                23992 << 10, 192 << 10,
            ),
        ),
        (OLD_AMDGPU, DrmClient("amdgpu", "0000:0b:00.0", 7, {"gfx": 0.001, "compute": 3.0}, {}, 4 << 20, 16 << 10)),
    ],
    ids=["i915", "xe", "amdgpu before Linux 6.12"],
)  # fmt: skip
def test_a_client_of_each_driver(text: bytes, client: DrmClient) -> None:
    assert client == parse_fdinfo(text)


@pytest.mark.parametrize("text", [b"", b"pos:\t0\nflags:\t0100002\n", b"drm-driver:\tvgem\n"])
def test_a_file_without_figures_is_no_client(text: bytes) -> None:
    assert parse_fdinfo(text) is None


@pytest.mark.parametrize("line", [b"drm-engine-render:\tmany ns", b"drm-resident-vram0:\t7 QiB", b"drm-client-id:\tx"])
def test_a_line_that_cannot_be_read_is_named(line: bytes) -> None:
    with pytest.raises(ValueError, match=line.partition(b":")[0].decode()):
        parse_fdinfo(I915 + line + b"\n")


def test_only_files_of_gpus_are_read(tmp_path: Path) -> None:
    files = {"7/fdinfo/3": I915.decode(), "7/fdinfo/4": I915.decode(), "7/fdinfo/5": XE.decode()}
    write_files(tmp_path, files)
    (tmp_path / "7/fd").mkdir()
    for name, target in (("3", "/dev/dri/renderD128"), ("4", "/tmp/x"), ("5", "/dev/dri/card1"), ("6", "/dev/dri/x")):
        os.symlink(target, tmp_path / "7/fd" / name)
    clients = read_clients(Machine(proc=str(tmp_path)), 7)
    assert [("0000:00:02.0", 42), ("0000:03:00.0", 3)] == sorted(client.key for client in clients)
