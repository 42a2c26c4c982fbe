"""The GPU time of a job's processes, from what the kernel's drivers count for each client."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from jobmeter.collectors.contract import Ending, Moment, Target
from jobmeter.collectors.drm import DrmCollector
from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from tests.sysfs import process_line, write_files

MIB = 1 << 20


class Gpus:
    """A /proc with a job, process 20 below the shepherd 10; 30 is another's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine = Machine(proc=str(folder / "proc"), sys=str(folder / "sys"))
        (folder / "sys/class/drm/renderD128").mkdir(parents=True)
        for pid, parent in {10: 1, 20: 10, 30: 1}.items():
            self.start(pid, parent)
        self.target = Target(10, 20, machine=self.machine)

    def start(self, pid: int, parent: int) -> None:
        (self.folder / f"proc/{pid}/fd").mkdir(parents=True)
        write_files(self.folder / "proc", {f"{pid}/stat": process_line(pid, parent), "loadavg": f"0 0 0 1/99 {pid}"})

    def client(self, pid: int, descriptor: int, client: int, **lines: Any) -> None:
        link = self.folder / f"proc/{pid}/fd/{descriptor}"
        if not os.path.lexists(link):
            os.symlink("/dev/dri/renderD128", link)
        text = {"drm-driver": "i915", "drm-pdev": "0000:00:02.0", "drm-client-id": client}
        text |= {f"drm-{name.replace('_', '-')}": value for name, value in lines.items()}
        content = "\n".join(f"{name}:\t{value}" for name, value in text.items())
        write_files(self.folder / "proc", {f"{pid}/fdinfo/{descriptor}": content})


@pytest.fixture
def gpus(tmp_path: Path) -> Gpus:
    return Gpus(tmp_path)


def test_a_client_that_two_descriptors_share_counts_once_and_one_of_another_job_never(gpus: Gpus) -> None:
    source = DrmCollector().open(gpus.target, DrmCollector.default)
    gpus.start(31, 20)
    for pid, descriptor in ((20, 3), (20, 4), (31, 3)):
        gpus.client(pid, descriptor, 1, engine_render="2000000000 ns", resident_local0="3 MiB")
    gpus.client(31, 5, 2, engine_copy="500000000 ns", resident_local0="1 MiB")
    gpus.client(30, 3, 9, engine_render="70000000000 ns", resident_local0="900 MiB")
    readings = source.read(Moment(time.monotonic()))
    assert {"drm_busy_seconds": 2.5, "drm_memory": 4 * MIB, "drm_gpus": 1} == readings
    source.close()


def test_a_gpu_that_is_only_open_does_not_count_beside_one_with_memory_of_the_job(gpus: Gpus) -> None:
    gpus.client(20, 3, 1, resident_local0="3 MiB")
    gpus.client(20, 4, 2, pdev="0000:03:00.0", resident_local0="0")
    source = DrmCollector().open(gpus.target, DrmCollector.default)
    readings = source.read(Moment(time.monotonic()))
    assert (3 * MIB, 1) == (readings["drm_memory"], readings["drm_gpus"])
    source.close()


def test_a_client_that_was_closed_keeps_what_it_used(gpus: Gpus) -> None:
    gpus.client(20, 3, 1, engine_render="2000000000 ns")
    source = DrmCollector().open(gpus.target, DrmCollector.default)
    source.read(Moment(time.monotonic()))
    (gpus.folder / "proc/20/fd/3").unlink()
    readings = source.read(Moment(time.monotonic()))
    assert 2.0 == readings["drm_busy_seconds"]
    assert 0 == readings["drm_memory"]
    assert {"drm_busy_seconds": 2.0} == source.finish(Moment(time.monotonic()), Ending())
    source.close()


def test_a_job_that_opens_no_gpu_has_no_figures(gpus: Gpus) -> None:
    source = DrmCollector().open(gpus.target, DrmCollector.default)
    assert {} == source.read(Moment(time.monotonic()))
    source.close()


def test_cycles_are_a_share_of_the_time_between_two_readings(gpus: Gpus) -> None:
    gpus.client(20, 3, 1, cycles_rcs=1000, total_cycles_rcs=10_000)
    source = DrmCollector().open(gpus.target, DrmCollector.default)
    began = time.monotonic()
    source.read(Moment(began))
    first = time.monotonic()
    gpus.client(20, 3, 1, cycles_rcs=1500, total_cycles_rcs=11_000)
    time.sleep(0.05)
    read_at = time.monotonic()
    busy = source.read(Moment(read_at))["drm_busy_seconds"]
    assert isinstance(busy, float)
    assert 0.5 * (read_at - first) <= busy <= 0.5 * (time.monotonic() - began)
    source.close()


def test_of_a_process_that_ran_before_only_what_it_uses_from_then_on_counts(gpus: Gpus) -> None:
    gpus.client(20, 3, 1, engine_render="2000000000 ns")
    source = DrmCollector().open(Target(20, 20, root_is_job=True, machine=gpus.machine), DrmCollector.default)
    gpus.client(20, 3, 1, engine_render="2750000000 ns")
    assert 0.75 == source.read(Moment(time.monotonic()))["drm_busy_seconds"]
    source.close()


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="no GPU"):
        DrmCollector().check(Machine(sys=str(tmp_path)))
