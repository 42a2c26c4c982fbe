"""GPUs of a machine, through a stub of NVIDIA's library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cluster.watching import figure
from tests.nvml.driver import StubDriver
from tests.nvml.test_nvml import gpu
from tests.records import violations_of_schema
from tests.waiting import LONG

GIB = 2**30
LATE_ONCE = """
import os, time
from jobmeter.cluster.gpu_use import GpuUse
from jobmeter.kernel.machine import THIS_MACHINE

path = os.environ["NVML_STUB"]
answers = open(path).read()

def say(text):
    open(path + ".new", "w").write(text)
    os.rename(path + ".new", path)

use = GpuUse(THIS_MACHINE)
use.wait_until_ready(100)
say(answers + "hang 1\\n")
while use.read():
    pass
say(answers)
for _ in range(100):
    time.sleep(0.1)  # as long as the driver may take to answer, on a busy machine
    if values := use.read():
        print(values["used_gpus"])
        break
"""
"""Reads GPUs whose driver is late once. It tries often, as an answer of a busy machine may be late, too."""


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


def test_a_driver_that_was_late_once_is_read_again(tmp_path: Path) -> None:
    driver = StubDriver(tmp_path)
    driver.say({"gpus": 1, **gpu(0, f"1:{GIB}", busy=80)})
    settings: Any = {"capture_output": True, "text": True, "timeout": LONG}
    done = subprocess.run([sys.executable, "-c", LATE_ONCE], env=driver.environment, check=False, **settings)
    assert ("0.8\n", "") == (done.stdout, done.stderr)
