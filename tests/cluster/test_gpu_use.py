"""GPUs of a machine, through a stub of NVIDIA's library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster.watching import figure
from tests.nvml.driver import StubDriver
from tests.nvml.test_nvml import gpu
from tests.records import violations_of_schema

GIB = 2**30


def watched(driver: StubDriver) -> Any:
    done = driver.jobmeter("cluster", "--engine", "local", "--for", "1s", "--interval", "0.2s", "--json")
    assert 0 == done.returncode, done.stderr
    report = json.loads(done.stdout)
    assert [] == violations_of_schema("cluster", report)
    return report


def test_gpus_that_are_there_and_busy_are_counted(tmp_path: Path) -> None:
    driver = StubDriver(tmp_path)
    driver.say({"gpus": 2, **gpu(0, f"1:{GIB}", busy=80), **gpu(1, f"1:{3 * GIB}", busy=20)})
    (node,) = watched(driver)["nodes"]
    assert (1.0, 2.0, 2.0) == tuple(figure(node, key) for key in ("used_gpus", "capacity_gpus", "total_gpus"))
    assert 0 < figure(node, "used_gpu_memory_bytes") <= figure(node, "capacity_gpu_memory_bytes")


def test_a_machine_without_gpus_has_none_of_it(tmp_path: Path) -> None:
    driver = StubDriver(tmp_path)
    driver.say({"gpus": 0})
    (node,) = watched(driver)["nodes"]
    assert not [key for key in node["figures"] if key.startswith("used_gpu")]
