"""What a run waited for, against records of which the truth is known."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.findings import findings
from jobmeter.analyse.stalls import time_split
from tests.runs import record


def run(cpu: float, wall: float = 100.0, cpus: int = 2, **counters: float) -> Any:
    """A run with these totals; `gpu` is its GPU time."""
    figures: dict[str, Any] = {"gpu_seconds": counters.pop("gpu")} if "gpu" in counters else {}
    of = record("r1", wall_seconds=wall, cpu_seconds=cpu, cpu_mean_percent=100 * cpu / wall, **figures)
    of["host"]["cpus"] = cpus
    of["measurements"] = {
        key: {"unit": "seconds", "kind": "counter", "total": value} for key, value in counters.items()
    }
    return of


def kinds(of: Any) -> list[str]:
    return [finding.kind for finding in findings(of)]


def test_the_parts_add_up_and_pressure_comes_before_what_was_seen() -> None:
    of = run(30, cgroup_io_pressure_seconds=40, cgroup_mem_pressure_seconds=5, cgroup_cpu_pressure_seconds=10,
             proc_disk_wait_seconds=99)  # fmt: skip
    split = time_split(of)
    assert {"running": 0.3, "runnable": 0.1, "disk": 0.4, "memory": 0.05, "idle": pytest.approx(0.15)} == split
    assert 1.0 == pytest.approx(sum(split.values()))
    assert ["running", "runnable", "disk", "memory", "idle"] == list(split)


def test_waits_of_many_threads_are_no_more_than_all_the_time() -> None:
    split = time_split(run(190, proc_run_delay_seconds=700, proc_disk_wait_seconds=1))
    assert 1.0 == pytest.approx(sum(split.values()))
    assert 0.99 == pytest.approx(split["running"])


def test_a_run_without_such_figures_has_no_bar() -> None:
    assert {} == time_split(run(30))
    assert {} == time_split(record("r1", wall_seconds=0.0, cpu_seconds=1.0))


def test_waits_for_a_disk_and_for_memory_are_reported_from_a_fifth_of_the_time_on() -> None:
    of = run(10, cgroup_io_pressure_seconds=40, cgroup_mem_pressure_seconds=25, cgroup_cpu_pressure_seconds=0)
    assert ["waits_disk", "waits_memory"] == kinds(of)
    assert "It waited for disk 40 % of the time." in [finding.text for finding in findings(of)]
    assert [] == kinds(run(10, proc_disk_wait_seconds=19))
    assert [] == kinds(run(0.1, wall=1.0, proc_disk_wait_seconds=0.9))  # too short to speak of


def test_threads_that_wait_for_one_another_are_oversubscribed() -> None:
    of = run(199, proc_run_delay_seconds=1400)
    assert ["It is oversubscribed: 16 threads on 2 CPUs."] == [finding.text for finding in findings(of)]


def test_threads_that_wait_for_other_jobs_are_not() -> None:
    assert ["waits_cpu"] == kinds(run(50, proc_run_delay_seconds=50))
    assert [] == kinds(run(100, proc_run_delay_seconds=5))


def test_a_job_that_is_swapped_in_again_and_again_is_swapping() -> None:
    of = record("r1", wall_seconds=100.0, cpu_seconds=1.0, memory_peak_bytes=1 << 30)
    of["measurements"] = {
        "cgroup_swap": {"unit": "bytes", "kind": "gauge", "peak": 512 << 20},
        "proc_major_faults": {"unit": "count", "kind": "counter", "total": 100_000},
    }
    assert ["It was swapping: 512 MiB swapped out, 1,000 page faults a second."] == [f.text for f in findings(of)]
    of["measurements"]["proc_major_faults"]["total"] = 100
    assert [] == kinds(of)


def test_a_gpu_that_waits_for_one_busy_cpu() -> None:
    assert ["gpu_waits"] == kinds(run(99, gpu=30))
    assert [] == kinds(run(99, gpu=80))
    assert [] == kinds(run(30, gpu=30))
