"""The plan of `workflow run --dry-run`: what would start when, what it requests and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jobmeter.byte_text import to_text
from jobmeter.cli.shared.output import print_json, print_line
from jobmeter.cli.shared.tables import print_table
from jobmeter.engines.contract import Capacity
from jobmeter.report.table_layout import Column
from jobmeter.units import text
from jobmeter.workflow.forecast import Forecast, forecast
from jobmeter.workflow.graph import critical_path, order
from jobmeter.workflow.plan import Job, Plan
from jobmeter.workflow.requirement_text import duration_in_words, requirement_in_words

_FEW = 10
"""Up to this many jobs of a sweep are listed one by one; more are one line."""
_MOST_NAMES = 3
_COLUMNS = (
    Column("wave", "count"),
    Column("job_id", essential=True),
    Column("name", essential=True, shortens=True),
    Column("requirement"),
    Column("blocked_by", shortens=True),
    Column("command", shortens=True),
)
"""The columns have the names of the JSON fields."""
_LONGEST = 200
"""The most characters of a command that are shown."""


class _Row(NamedTuple):
    """A job, or the jobs of a sweep that can begin in the same wave."""

    wave: int
    jobs: list[Job]

    @property
    def name(self) -> str:
        first = self.jobs[0]
        return first.name if len(self.jobs) == 1 else f"{first.step} × {len(self.jobs):,}"

    @property
    def number(self) -> str:
        first, last = self.jobs[0].number, self.jobs[-1].number
        return f"{first}" if first == last else f"{first}-{last}"


def print_plan(plan: Plan, capacity: Capacity) -> None:
    """Print the plan for people, on stdout: wave after wave, then the totals."""
    rows = _rows(plan.jobs)
    names = {job.number: row.name for row in rows for job in row.jobs}
    cells = [
        [
            str(row.wave),
            row.number,
            row.name,
            requirement_in_words(row.jobs[0].requirement),
            _named(row.jobs, names),
            _one_line(row.jobs[0].script),
        ]
        for row in rows
    ]
    print_table(_COLUMNS, cells)
    print_line()
    for what, words in _totals(plan.jobs, capacity):
        print_line(f"{what:<11}{words}")


def print_plan_json(plan: Plan, capacity: Capacity) -> None:
    """Print the plan as a JSON object, with every job by itself."""
    waves = _waves(plan.jobs)
    expected = forecast(plan.jobs, capacity)
    about = {
        "name": plan.name,
        "spec": to_text(plan.path),
        "capacity": capacity.known(),
        "total_jobs": len(plan.jobs),
        "longest_chain": critical_path(plan.jobs, _weights(plan.jobs)),
        "concurrency": expected.concurrency,
        "seconds_at_most": expected.seconds,
    }
    jobs = [
        {
            "job_id": job.number,
            "name": job.name,
            "step": job.step,
            "wave": waves[job.number],
            "command": job.script,
            "cwd": to_text(job.directory),
            "requirement": job.requirement.requested(),
            "blocked_by": list(job.blocked_by),
            "priority": job.priority,
        }
        for job in _sorted(plan.jobs, waves)
    ]
    fields = {name: value for name, value in about.items() if value is not None}
    print_json({**fields, "jobs": jobs})


def _rows(jobs: Sequence[Job]) -> list[_Row]:
    waves = _waves(jobs)
    alike: dict[tuple[int, str], list[Job]] = {}
    for job in _sorted(jobs, waves):
        alike.setdefault((waves[job.number], job.step), []).append(job)
    rows = []
    for (wave, _), group in alike.items():
        rows += [_Row(wave, group)] if len(group) > _FEW else [_Row(wave, [job]) for job in group]
    return rows


def _sorted(jobs: Iterable[Job], waves: Mapping[int, int]) -> list[Job]:
    """The jobs in the order in which they could start."""
    return sorted(jobs, key=lambda job: (waves[job.number], -job.priority, job.number))


def _waves(jobs: Sequence[Job]) -> dict[int, int]:
    """Job → its wave: 1 if it waits for nothing, else one more than the latest wave of the jobs that it waits for."""
    waves: dict[int, int] = {}
    by_needs: dict[int, int] = {}  # id(blocked_by) → wave: the jobs of a sweep often share this tuple
    for job in order(jobs):
        same = id(job.blocked_by)
        if same not in by_needs:
            by_needs[same] = 1 + max((waves[before] for before in job.blocked_by), default=0)
        waves[job.number] = by_needs[same]
    return waves


def _named(jobs: Sequence[Job], names: Mapping[int, str]) -> str:
    """The names of what the jobs wait for, a sweep as one name; of many, the first `_MOST_NAMES`."""
    befores = list(dict.fromkeys(names[before] for before in dict.fromkeys(n for job in jobs for n in job.blocked_by)))
    rest = len(befores) - _MOST_NAMES
    return ", ".join(befores[:_MOST_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")


def _one_line(script: str) -> str:
    lines = script.strip().splitlines() or [""]
    line = lines[0][:_LONGEST]
    return f"{line} …" if len(lines) > 1 or len(lines[0]) > _LONGEST else line


def _weights(jobs: Iterable[Job]) -> dict[int, float]:
    """The weight of each job in the longest chain: its requested runtime if all jobs request one, else 1."""
    runtimes = {job.number: job.requirement.runtime_seconds for job in jobs}
    requested = {number: seconds for number, seconds in runtimes.items() if seconds is not None}
    return requested if len(requested) == len(runtimes) else dict.fromkeys(runtimes, 1.0)


def _totals(jobs: Sequence[Job], capacity: Capacity) -> list[tuple[str, str]]:
    chain = critical_path(jobs, _weights(jobs))
    names = {job.number: job.name for job in jobs}
    shown = [names[number] for number in chain]
    if len(shown) > 5:
        shown = [*shown[:2], f"… {len(shown) - 4:,} more …", *shown[-2:]]
    expected = forecast(jobs, capacity)
    amounts = [
        "" if capacity.cpus is None else f"{capacity.cpus:g} cpus",
        "" if capacity.memory_bytes is None else text(capacity.memory_bytes, "bytes"),
        f"{capacity.gpus} gpus" if capacity.gpus else "",
    ]
    there_are = ", ".join(filter(None, amounts))
    return [
        ("jobs", f"{len(jobs):,}"),
        ("longest", f"{' → '.join(shown)} ({len(chain):,} job{'s' * (len(chain) != 1)})"),
        ("at a time", f"{expected.concurrency:,} at most{there_are and f', on {there_are}'}"),
        ("time", _time(expected, len(jobs))),
    ]


def _time(expected: Forecast, jobs: int) -> str:
    if expected.seconds is not None:
        return f"{duration_in_words(expected.seconds)} at most: if every job takes the runtime it requests"
    without = expected.without_runtime
    which = "no job requests a" if without == jobs else f"{without:,} of {jobs:,} jobs request no"
    return f"not known: {which} runtime"
