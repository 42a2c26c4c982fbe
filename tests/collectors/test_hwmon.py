"""Temperatures, from a tree of sysfs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from jobmeter.collectors.contract import Moment, Target
from jobmeter.collectors.hwmon import HwmonCollector
from jobmeter.errors import NoData
from tests.sysfs import machine

CHIPS: dict[str, object] = {
    "class/hwmon/hwmon0/name": "coretemp",
    "class/hwmon/hwmon0/temp1_input": 61_000,
    "class/hwmon/hwmon0/temp1_label": "Package id 0",
    "class/hwmon/hwmon0/temp2_input": 58_500,
    "class/hwmon/hwmon0/temp3_input": "",  # a sensor that failed
    "class/hwmon/hwmon1/name": "nvme",
    "class/hwmon/hwmon1/temp1_input": 44_850,
    "class/hwmon/hwmon2/name": "acpitz",
    "class/hwmon/hwmon2/temp1_input": 70_000,
    "class/hwmon/hwmon2/temp2_input": -274_000,
    "class/hwmon/hwmon3/fan1_input": 900,  # without a name
}


def test_the_hottest_of_each_kind_of_chip(tmp_path: Path) -> None:
    source = HwmonCollector().open(Target(1, 1, machine=machine(tmp_path, CHIPS)), HwmonCollector.default)
    readings = source.read(Moment(time.monotonic()))
    assert [61.0, 58.5] == readings["hwmon_cpu_temperature"]
    assert [44.85] == readings["hwmon_disk_temperature"]
    assert [61.0, 58.5, 44.85, 70.0, 0.0] == readings["hwmon_temperature"]


def test_without_sensors_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="no temperature sensors"):
        HwmonCollector().check(machine(tmp_path, {"class/hwmon/hwmon0/name": "empty"}))
