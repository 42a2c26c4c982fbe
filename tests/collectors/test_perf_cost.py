"""When perf would cost a job too much, by the files of a machine that has nothing but what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.collectors.contract import Target
from jobmeter.collectors.perf_cost import PerfCost
from jobmeter.kernel.machine import Machine

SHEPHERD, JOB = 300, 301
STAT = "{pid} (x) S {parent} 1 1 0 -1 0 0 {faults} 0 0 1 1 0 0 20 0 1 0 500 1000 10 0\n"


class Busy:
    """A machine with one job; every number is since the start."""

    def __init__(self, folder: Path, *, newest: int = 1000, attached: bool = False) -> None:
        self._folder = folder
        self._newest = newest
        self._now = 1000.0
        (folder / "sys" / "kernel").mkdir(parents=True)
        (folder / "sys" / "kernel" / "pid_max").write_text("32768\n")
        self._write(newest, 0, 0, 0)
        root = JOB if attached else SHEPHERD
        target = Target(root, JOB, root_is_job=attached, machine=Machine(proc=str(folder)))
        self.cost = PerfCost(target, clock=lambda: self._now)

    def _write(self, newest: int, switches: int, faults: int, runs: int) -> None:
        (self._folder / "loadavg").write_text(f"0.1 0.1 0.1 1/50 {newest}\n")
        (self._folder / "stat").write_text(f"cpu 1 2 3 4 5 6 7 8\nctxt {switches}\n")
        for pid, parent, own_faults, own_runs in ((SHEPHERD, 1, 0, 0), (JOB, SHEPHERD, faults, runs)):
            (self._folder / f"{pid}/task/{pid}").mkdir(parents=True, exist_ok=True)
            (self._folder / f"{pid}/stat").write_text(STAT.format(pid=pid, parent=parent, faults=own_faults))
            (self._folder / f"{pid}/task/{pid}/schedstat").write_text(f"1 1 {own_runs}\n")

    def after(
        self, seconds: float, *, tasks: int = 0, switches: int = 0, faults: int = 0, runs: int = 0, cpus: float = 1.0
    ) -> str | None:
        """What is said so many seconds after the start."""
        self._write((self._newest + tasks) % 32768, switches, faults, runs)
        self._now = 1000.0 + seconds
        return self.cost.too_high(int(cpus * seconds * 1e9))


@pytest.fixture
def busy(tmp_path: Path) -> Busy:
    return Busy(tmp_path)


def test_a_job_that_forks_is_reported_with_the_rate(busy: Busy) -> None:
    why = busy.after(0.2, tasks=1200, switches=2400, faults=24000, runs=1200)
    assert why == (
        "stopped after 0.20 s: its events would slow the job down "
        "(up to 6,000 new processes and threads and 6,000 context switches a second)"
    )


def test_a_job_that_switches_between_its_threads_is_reported_with_the_rate(busy: Busy) -> None:
    why = busy.after(0.2, switches=50000, runs=40000)
    assert (
        why == "stopped after 0.20 s: its events would slow the job down "
        "(up to 0 new processes and threads and 200,000 context switches a second)"
    )


def test_what_costs_a_little_too_much_is_seen_twice_before_it_is_believed(busy: Busy) -> None:
    assert None is busy.after(0.2, tasks=800, faults=16000, runs=800)
    assert busy.after(0.4, tasks=1600, faults=32000, runs=1600) is not None


def test_threads_that_are_only_started_once_are_no_reason(busy: Busy) -> None:
    assert None is busy.after(0.1, tasks=400, runs=400)
    assert None is busy.after(0.25, tasks=400, runs=500)
    assert None is busy.after(0.4, tasks=800, runs=900)


@pytest.mark.parametrize(
    "use",
    [
        {},
        {"tasks": 300, "faults": 6000, "runs": 300},
        {"switches": 7000, "runs": 7000},
        # Another job forks, or has its threads wait for each other.
        {"tasks": 2000, "switches": 4000, "faults": 50, "runs": 5},
        {"switches": 100000, "runs": 20},
        # A job of 32 CPUs: the same number of switches is little of what it does.
        {"switches": 30000, "runs": 20000, "cpus": 32.0},
    ],
    ids=["idle", "few forks", "few switches", "others fork", "others switch", "a large job"],
)
def test_events_that_cost_the_job_little_go_on(busy: Busy, use: dict[str, int]) -> None:
    assert None is busy.after(0.2, **use)


def test_the_cost_is_not_checked_again_at_once(busy: Busy) -> None:
    assert None is busy.after(0.05, tasks=1000, faults=20000)
    assert None is busy.after(0.2)
    assert None is busy.after(0.25, tasks=2000, faults=40000)
    assert busy.after(0.31, tasks=2000, faults=40000) is not None


def test_numbers_of_processes_that_begin_anew_are_no_burst(tmp_path: Path) -> None:
    busy = Busy(tmp_path, newest=32700)
    assert None is busy.after(0.2, tasks=100, faults=2000)
    assert busy.after(0.4, tasks=1300, faults=46000) is not None


def test_for_a_job_that_already_runs_the_first_reading_is_only_the_baseline(tmp_path: Path) -> None:
    busy = Busy(tmp_path, attached=True)
    assert None is busy.after(0.2, tasks=1200, faults=10**9, runs=10**6)
    assert None is busy.after(0.4, tasks=2400, faults=10**9, runs=10**6)
    assert busy.after(0.6, tasks=3600, faults=10**9 + 24000, runs=10**6) is not None


def test_a_machine_that_reports_nothing_stops_nothing(tmp_path: Path) -> None:
    cost = PerfCost(Target(SHEPHERD, JOB, machine=Machine(proc=str(tmp_path))))
    assert None is cost.too_high(0)
