"""What runs used against what they asked for, and how those that failed did.

A row here is one of the store's: the fields of a run by name, what is not known of it absent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from jobmeter.analyse.outcome import in_words
from jobmeter.model import Outcome, Quality

Row = Mapping[str, Any]

SHORTEST_OVER = 0.1
"""Seconds of CPU time beyond what was asked for; less is the start and the end of a run, not its work."""
MEAN_OVER = 1.02
"""Accounts of CPU time agree to within 2 %: a mean that is closer to what was asked for is not above it."""

PEAK_OVER = 5.0
"""Percent of one CPU by which a peak may be too high, for each CPU that was asked for."""
_SPAN = 0.25
_OWN_LIMIT = 0.8
"""Share of what was asked for below which an exact peak did not meet it: another limit was met."""


class Resource(NamedTuple):
    """One thing that is asked for."""

    name: str  # as told to people
    key: str  # memory, cpus, runtime
    unit: str
    asked: str  # the field of the row that has what was asked for
    each: float  # of the unit, in one of what was asked for
    used: str
    quality: str  # the field that tells how far to trust what was used; "" when it is sure
    met_by: str  # the status of a run that met this limit
    cause: str  # the same in words


MEMORY = Resource(
    "Memory", "memory", "bytes", "requirement_memory_bytes", 1, "memory_peak_bytes", "memory_quality", "oom",
    "out of memory",
)  # fmt: skip
CPU = Resource("CPU", "cpus", "percent", "requirement_cpus", 100, "cpu_peak_percent", "cpu_quality", "", "")
RUNTIME = Resource(
    "Runtime", "runtime", "seconds", "requirement_runtime_seconds", 1, "wall_seconds", "", "timeout", "timeout"
)
RESOURCES = (MEMORY, CPU, RUNTIME)


class Job(NamedTuple):
    """Whose run it was."""

    id: int | str  # its number in the workflow; of a run outside of workflows, the run's id
    name: str
    step: str  # its name as the spec has it, the same for all jobs of a sweep
    attempt: int
    run: str  # the run's id: numbers of jobs are the same in every run of a workflow


class Line(NamedTuple):
    """One resource of one run."""

    job: Job
    resource: Resource
    specified: float
    used: float
    at_least: bool  # it used that or more
    is_violation: bool
    cause: str | None  # it met its limit, and this is how it ended

    @property
    def percent(self) -> float:
        """How much more was used than asked for; negative when less."""
        return 100 * (self.used - self.specified) / self.specified


class Failure(NamedTuple):
    """A run that did not complete, for another reason than what it asked for."""

    job: Job
    status: str
    cause: str


class Checked(NamedTuple):
    lines: list[Line]
    failures: list[Failure]

    @property
    def violations(self) -> list[Line]:
        return [line for line in self.lines if line.is_violation]


def check(rows: Iterable[Row], min_over: float = 1.0, *, everything: bool = True) -> Checked:
    """Every resource that a run asked for and of which is known what it used; over-use from `min_over` percent on.

    Without `everything` the violations alone. Lines of jobs of a workflow come in the order of their numbers, others in
    that of the rows.
    """
    lines: list[Line] = []
    failures: list[Failure] = []
    for row in rows:
        job = job_of(row)
        found = list(_lines(row, job, min_over, everything))
        lines += found
        if row["status"] not in ("completed", "running") and not any(line.cause for line in found):
            cause = in_words(Outcome(row["status"], row.get("exit_code"), row.get("signal")))
            failures.append(Failure(job, row["status"], cause))
    lines.sort(key=lambda line: _order(line.job))
    failures.sort(key=lambda failure: _order(failure.job))
    return Checked(lines, failures)


def asked_for_something(rows: Iterable[Row]) -> bool:
    """Whether any run can be held against something."""
    return any(row.get(resource.asked) for row in rows for resource in RESOURCES)


def job_of(row: Row) -> Job:
    part: Row = row.get("workflow_job") or {}
    name = str(row["name"])
    step, attempt = str(part.get("step", name)), int(part.get("attempt", 1))
    return Job(part["job_id"] if part else row["id"], name, step, attempt, row["id"])


def _order(job: Job) -> tuple[int, int]:
    return (job.id, job.attempt) if isinstance(job.id, int) else (0, 0)


def _lines(row: Row, job: Job, min_over: float, everything: bool) -> Iterator[Line]:
    for resource in RESOURCES:
        asked, used = row.get(resource.asked), row.get(resource.used)
        if not asked:
            continue
        specified = asked * resource.each
        if met_limit(row, resource):
            # It would have used more: by how much, nobody knows.
            yield Line(job, resource, specified, max(used or 0, specified), True, True, resource.cause)
        elif used is not None:
            is_over = used > specified and 100 * (used - specified) / specified >= min_over
            if is_over and resource is CPU:
                is_over = uses_more_cpus(row, asked)
            if is_over or everything:
                at_least = bool(resource.quality) and row.get(resource.quality) == Quality.AT_LEAST.value
                yield Line(job, resource, specified, used, at_least, is_over, None)


def met_limit(row: Row, resource: Resource) -> bool:
    """Whether a run ended because it met what it asked for.

    One can also run out of memory under the limit of a container around it, or of the machine. A peak that was
    sampled does not tell: what met the limit may have come and gone between two looks.
    """
    asked, used = row.get(resource.asked), row.get(resource.used)
    if not asked or row.get("status") != resource.met_by:
        return False
    is_exact = used is not None and row.get(resource.quality) == Quality.EXACT.value
    return not is_exact or used >= _OWN_LIMIT * asked * resource.each


def uses_more_cpus(row: Row, cpus: float) -> bool:
    """Whether a run is sure to have used more than so many CPUs, whichever moments its CPU time was read at.

    Of two things one must hold:

    - Its mean is above them, by more than accounts of CPU time differ (`MEAN_OVER`) and by `SHORTEST_OVER` at least.
      The mean is the CPU time of the whole run over its wall time: gaps between readings have no part in it.
    - A peak is further above them than counters can lag behind. A peak is the CPU time between two looks over the
      time between them, 0.25 s or more, and never too high for late looks (`collectors.rate`). But the kernel adds to
      a counter once a tick, and so what a look missed of each CPU the next one finds: at most 10 ms, which is 4 % of
      a CPU in the shortest span. A run shorter than such a span is one span as long as itself.
    """
    asked = 100 * cpus
    mean, wall, peak = row.get("cpu_mean_percent"), row.get("wall_seconds"), row.get("cpu_peak_percent")
    if mean is not None and wall and mean > asked * MEAN_OVER and (mean - asked) / 100 * wall > SHORTEST_OVER:
        return True
    lag = PEAK_OVER * math.ceil(cpus)
    if wall and wall < _SPAN:
        lag *= _SPAN / wall
    return peak is not None and peak > asked + lag
