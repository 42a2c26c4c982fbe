from __future__ import annotations

from typing import Any

import pytest

from jobmeter.report.run import summary_lines

GIB = 2**30


def figure(value: float, source: str, quality: str = "exact") -> dict[str, Any]:
    return {"value": value, "from": source, "quality": quality}


def record(
    usage: dict[str, dict[str, Any]],
    *,
    requirement: dict[str, float] | None = None,
    outcome: dict[str, Any] | None = None,
    left_running: int = 0,
) -> Any:
    return {
        "id": "abc234",
        "name": "train",
        "wall_seconds": 12.3,
        "outcome": outcome or {"status": "completed", "exit_code": 0, "signal": None},
        "requirement": requirement or {},
        "usage": usage,
        "provenance": {"left_running": left_running} if left_running else {},
    }


FULL = {
    "cpu_seconds": figure(21.4, "perf_cpu_seconds"),
    "cpu_mean_percent": figure(173.98, "perf_cpu_seconds"),
    "cpu_peak_percent": figure(199.0, "perf_cpu_percent", "sampled"),
    "memory_peak_bytes": figure(3 * GIB, "cgroup_mem_peak"),
    "memory_mean_bytes": figure(1.5 * GIB, "cgroup_held", "sampled"),
    "read_bytes": figure(4096, "proc_read_bytes", "at least"),
    "write_bytes": figure(0, "proc_write_bytes", "at least"),
    "processes_peak": figure(7, "proc_processes", "sampled"),
}


def test_a_full_record_is_summarised_in_a_few_lines() -> None:
    requirement = {"cpus": 2.0, "memory_bytes": 4.0 * GIB, "runtime_seconds": 60.0}
    assert [
        "jobmeter: train completed after 12.30 s",
        "  CPU        21.40 s, 174 % on average, 87 % of the 2 CPUs requested [exact, perf], "
        "199 % at most [sampled, perf]",
        "  memory     3 GiB at most, 75 % of the 4 GiB requested [exact, cgroup], 1.5 GiB on average [sampled, cgroup]",
        "  disk       4 KiB read, 0 B written",
        "  processes  7 at most",
        "  record     abc234  /store/journal/abc234.jsonl",
    ] == summary_lines(record(FULL, requirement=requirement), "/store/journal/abc234.jsonl")


def test_what_was_not_measured_is_not_shown() -> None:
    assert ["jobmeter: train completed after 12.30 s"] == summary_lines(record({}), None)


def test_a_figure_that_may_be_incomplete_says_at_least_and_not_at_most() -> None:
    usage = {
        "cpu_seconds": figure(5.0, "proc_cpu_seconds", "at least"),
        "memory_peak_bytes": figure(GIB, "rusage_maxrss", "at least"),
    }
    assert [
        "  CPU        at least 5 s [at least, proc]",
        "  memory     at least 1 GiB at the peak [at least, rusage]",
    ] == summary_lines(record(usage), None)[1:]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ({"status": "failed", "exit_code": 3, "signal": None}, "train failed with exit code 3 after 12.30 s"),
        ({"status": "killed", "exit_code": None, "signal": 11}, "train killed by SIGSEGV after 12.30 s"),
        ({"status": "oom", "exit_code": None, "signal": 9}, "train out of memory (SIGKILL) after 12.30 s"),
    ],
)
def test_the_first_line_says_how_it_ended(outcome: dict[str, Any], expected: str) -> None:
    assert f"jobmeter: {expected}" == summary_lines(record({}, outcome=outcome), None)[0]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, "  left       1 process still runs and was left alone; --orphans wait measures to the end"),
        (3, "  left       3 processes still run and were left alone; --orphans wait measures to the end"),
    ],
)
def test_processes_left_running_are_reported_with_what_to_do(count: int, expected: str) -> None:
    assert [expected] == summary_lines(record({}, left_running=count), None)[1:]


def test_of_one_that_is_measured_no_longer_nothing_is_left() -> None:
    # `attach` that was stopped: what goes on is what it says in the first line.
    stopped = record({}, outcome={"status": "detached", "exit_code": None, "signal": None}, left_running=1)
    assert ["jobmeter: train detached (still running) after 12.30 s"] == summary_lines(stopped, None)


@pytest.mark.parametrize(
    ("usage", "requirement", "status", "expected"),
    [
        ({"memory_peak_bytes": figure(5 * GIB, "rusage_maxrss", "at least")}, {"memory_bytes": 4 * GIB}, "completed",
         ["  too little Memory at least 5 GiB of the 4 GiB requested"]),
        ({"memory_peak_bytes": figure(4 * GIB, "cgroup_mem_peak")}, {"memory_bytes": 4 * GIB}, "oom",
         ["  too little out of memory with the 4 GiB requested"]),
        ({"memory_peak_bytes": figure(GIB, "cgroup_mem_peak")}, {"memory_bytes": 8 * GIB}, "completed",
         ["  too much   requested 8 GiB, used 1 GiB at most: 6.8 GiB less would free 0.0232 GiB-h a run"]),
        ({}, {"runtime_seconds": 10.0}, "completed", ["  too little Runtime 12.30 s of the 10 s requested"]),
        ({"memory_peak_bytes": figure(3 * GIB, "cgroup_mem_peak")}, {"memory_bytes": 4 * GIB}, "completed", []),
    ],
)  # fmt: skip
def test_what_was_requested_too_little_or_too_much_is_reported(
    usage: dict[str, dict[str, Any]], requirement: dict[str, float], status: str, expected: list[str]
) -> None:
    outcome = {"status": status, "exit_code": 0, "signal": None}
    lines = summary_lines(record(usage, requirement=requirement, outcome=outcome), None)
    assert expected == [line for line in lines if line.startswith("  too ")]
