"""AMD GPUs, from a tree of sysfs with two of them and a CPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from jobmeter.collectors.contract import Moment, Target
from jobmeter.collectors.rocm import RocmCollector
from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import read_environment
from jobmeter.model import Quality
from tests.sysfs import machine, write_files
from tests.waiting import wait_for

NODES = "class/kfd/kfd/topology/nodes"
GIB = 2**30


def tree(own: int, other: int) -> dict[str, object]:
    """Process `own` has 2 GiB on the first GPU, `other` 1 GiB on the second."""
    files: dict[str, object] = {f"{NODES}/0/gpu_id": 0, f"{NODES}/0/properties": "cpu_cores_count 8\nsimd_count 0"}
    for number, (node, gpu_id, minor) in enumerate((("1", 111, 128), ("2", 222, 129))):
        files |= {f"{NODES}/{node}/gpu_id": gpu_id, f"{NODES}/{node}/properties": f"drm_render_minor {minor}\nx y"}
        device = f"class/drm/renderD{minor}/device"
        files |= {
            f"{device}/unique_id": f"abc{number}",
            f"{device}/product_name": "Instinct",
            f"{device}/gpu_busy_percent": 40,
            f"{device}/mem_info_vram_used": 4 * GIB,
            f"{device}/mem_info_vram_total": 16 * GIB,
            f"{device}/hwmon/hwmon3/name": "amdgpu",
            f"{device}/hwmon/hwmon3/power1_average": 150_000_000,
            f"{device}/hwmon/hwmon3/temp1_input": 55_000,
        }
    files |= {f"class/kfd/kfd/proc/{own}/vram_111": 2 * GIB, f"class/kfd/kfd/proc/{own}/vram_222": 0}
    files |= {f"class/kfd/kfd/proc/{other}/vram_222": GIB, f"class/kfd/kfd/proc/{other}/vram_111": 0}
    return files


def target(here: Machine) -> Target:
    return Target(os.getpid(), os.getpid(), root_is_job=True, machine=here)


def test_the_gpu_with_memory_of_the_job_is_the_jobs(tmp_path: Path) -> None:
    here = machine(tmp_path, tree(os.getpid(), 1))
    source = RocmCollector().open(target(here), RocmCollector.default)
    readings = source.read(Moment(time.monotonic()))
    assert 1 == readings["rocm_gpus"]
    assert [2 * GIB] == readings["rocm_memory"]
    assert [150.0] == readings["rocm_power"]
    assert [55.0] == readings["rocm_temperature"]
    assert [25.0] == readings["rocm_memory_percent"]
    assert [40.0] == readings["rocm_percent"]
    busy, energy = readings["rocm_busy_seconds"], readings["rocm_energy"]
    assert isinstance(busy, float)
    assert isinstance(energy, float)
    assert energy == pytest.approx(150 * busy / 0.4, rel=0.01)
    (device,) = source.devices()
    assert ("GPU-abc0", "Instinct", 16 * GIB) == (device["uuid"], device["name"], device["memory_bytes"])
    assert {} == source.qualities()


def test_a_gpu_that_another_process_uses_too_is_shared(tmp_path: Path) -> None:
    here = machine(tmp_path, tree(os.getpid(), 1) | {"class/kfd/kfd/proc/1/vram_111": 5})
    source = RocmCollector().open(target(here), RocmCollector.default)
    source.read(Moment(time.monotonic()))
    assert {"rocm_busy_seconds", "rocm_percent", "rocm_energy"} == source.qualities().keys()
    assert {Quality.SHARED} == set(source.qualities().values())


def test_a_gpu_that_the_environment_names_as_rocm_does_is_the_jobs(tmp_path: Path) -> None:
    here = machine(tmp_path, tree(1, 1))
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, "ROCR_VISIBLE_DEVICES": "GPU-ABC1"}) as job:
        try:
            # Until it has executed its command, it has the environment of this process.
            wait_for(lambda: read_environment(here, job.pid).get("ROCR_VISIBLE_DEVICES") == "GPU-ABC1", "the job runs")
            source = RocmCollector().open(Target(job.pid, job.pid, machine=here), RocmCollector.default)
            source.read(Moment(time.monotonic()))
            assert ["GPU-abc1"] == [device["uuid"] for device in source.devices()]
        finally:
            job.kill()


def test_energy_of_the_devices_own_counter(tmp_path: Path) -> None:
    counter = "class/drm/renderD128/device/hwmon/hwmon3/energy1_input"
    here = machine(tmp_path, tree(os.getpid(), 1) | {counter: 5_000_000})
    source = RocmCollector().open(target(here), RocmCollector.default)
    write_files(tmp_path / "sys", {counter: 7_500_000})
    assert 2.5 == source.read(Moment(time.monotonic()))["rocm_energy"]


def test_a_gpu_that_vanishes_is_reported_and_the_other_goes_on(tmp_path: Path) -> None:
    here = machine(tmp_path, tree(os.getpid(), 1) | {f"class/kfd/kfd/proc/{os.getpid()}/vram_222": GIB})
    source = RocmCollector().open(target(here), RocmCollector.default)
    assert 2 == source.read(Moment(time.monotonic()))["rocm_gpus"]
    shutil.rmtree(tmp_path / "sys/class/drm/renderD128/device")
    assert [GIB] == source.read(Moment(time.monotonic()))["rocm_memory"]
    state = source.state()
    assert state is not None
    assert "GPU 0" in state["failed"]


def test_sensors_that_cannot_be_read_are_absent(tmp_path: Path) -> None:
    files = tree(os.getpid(), 1)
    device = "class/drm/renderD128/device"
    for name in ("hwmon/hwmon3/power1_average", "hwmon/hwmon3/temp1_input", "gpu_busy_percent"):
        files[f"{device}/{name}"] = "no number"
    source = RocmCollector().open(target(machine(tmp_path, files)), RocmCollector.default)
    assert {"rocm_gpus", "rocm_memory", "rocm_memory_percent"} == source.read(Moment(time.monotonic())).keys()


def test_without_an_amd_gpu_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="no AMD GPU"):
        RocmCollector().check(machine(tmp_path))
