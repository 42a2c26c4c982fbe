"""This machine as a cluster of one node."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jobmeter
from jobmeter.errors import UsageError
from tests.cluster.watching import figure, kinds, watched
from tests.records import violations_of_schema
from tests.waiting import wait_for


@pytest.fixture
def hog() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    process.kill()
    process.wait()


def test_the_machine_is_one_node_whose_use_is_all_of_it(hog: None) -> None:
    with watched(None) as watch:
        watch.wait_for_seconds(2.0)
        report = watch.stop()
    (node,) = report["nodes"]
    assert ("machine", os.uname().nodename) == (node["scope"], node["name"])
    assert 0.5 < figure(node, "used_cpus") <= (os.cpu_count() or 1) * 1.1
    assert 0 < figure(node, "used_memory_bytes") < figure(node, "capacity_memory_bytes")
    assert "over_reserved" not in kinds(report)


def test_what_running_jobs_of_the_store_request_is_reserved(tmp_path: Path) -> None:
    store = str(tmp_path)
    jobs = [jobmeter.start(["sleep", "1000"], name="train", cpus=1.5, memory="1g", store=store) for _ in range(2)]
    try:
        monitor = jobmeter.ClusterMonitor("local", interval=0.1, store=store)
        monitor.start()
        wait_for(lambda: bool(monitor.poll().tasks), "the jobs are seen")
        monitor.stop()
        report = monitor.report()
    finally:
        for job in jobs:
            job.cancel()
            job.wait()
    assert [] == violations_of_schema("cluster", report)
    (node,) = report["nodes"]
    assert (3.0, 2.0 * 2**30) == (figure(node, "reserved_cpus", "last"), figure(node, "reserved_memory_bytes", "last"))
    (task,) = report["tasks"]
    assert ("train", {"cpus": 1.5, "memory_bytes": 2.0**30}) == (task["name"], task["request"])
    assert 2.0 == figure(task, "running", "last")
    assert not monitor.is_idle


def test_without_running_jobs_it_is_idle_and_without_a_store_that_is_not_known(tmp_path: Path) -> None:
    with jobmeter.ClusterMonitor("local", interval=0.1, store=str(tmp_path)) as monitor:
        wait_for(lambda: len(monitor.history.samples) > 3, "it polls in a thread of its own")
    assert monitor.is_idle
    alone = jobmeter.ClusterMonitor("local", store=str(tmp_path / "none"), keep=False)
    alone.start()
    alone.stop()
    assert not alone.is_idle
    assert ["without a store it is not known what running jobs request"] == alone.report()["notes"]
    assert "reserved_cpus" not in alone.report()["nodes"][0]["figures"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("slurm",), "a cluster of 'slurm' cannot be watched"),
        (("local", "head:6379"), "the local engine has none"),
    ],
)
def test_what_cannot_be_watched_is_refused(arguments: tuple[str, ...], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        jobmeter.ClusterMonitor(*arguments, store=str(tmp_path))


def test_an_interval_must_be_above_0() -> None:
    with pytest.raises(UsageError, match="interval: 0 is not above 0"):
        jobmeter.ClusterMonitor("local", interval=0)
