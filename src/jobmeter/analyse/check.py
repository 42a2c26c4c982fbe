"""What runs used against what they asked for, and how those that failed did.

A row here is one of the store's: the fields of a run by name, what is not known of it absent.

Of a job of a workflow with several attempts the last one is judged, by what it asked for itself. An earlier one is
judged too, of each resource of which the job asks for no more today than that attempt did: who ran out of memory and
completed with what a retry gave it asks for too little still, and who was given more in the spec since does not. What
a job asks for today is what the plan of the run has; without a plan, what its first attempt asked for. A job failed if
its last attempt did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from jobmeter.analyse.outcome import in_words
from jobmeter.model import Outcome, Quality, Requirement, Status

Row = Mapping[str, Any]

SHORTEST_OVER = 0.1
"""Seconds of CPU time beyond what was asked for; less is the start and the end of a run, not its work."""
MEAN_OVER = 1.02
"""Accounts of CPU time agree to within 2 %: a mean that is closer to what was asked for is not above it."""

PEAK_OVER = 1.1
"""A CPU limit hands out its share every 100 ms: in the second of a peak there may be eleven shares instead of ten."""
TICK_LAG = 5.0
"""Percent of one CPU by which a peak may be too high besides, for each CPU that was requested."""
_NO_FAILURE = (Status.COMPLETED, Status.RUNNING, Status.DETACHED)
_SPAN = 1.0
"""Seconds that a peak of CPU is taken over, or more (`collectors.rate`)."""
_OWN_LIMIT = 0.8
"""Share of what was asked for below which an exact peak did not meet it: another limit was met."""


class Resource(NamedTuple):
    """One thing that is asked for."""

    name: str  # as told to people
    key: str  # memory, cpus, runtime
    unit: str
    field: str  # of a requirement
    asked: str  # the field of the row that has what was asked for
    each: float  # of the unit, in one of what was asked for
    used: str
    quality: str  # the field that tells how far to trust what was used; "" when it is sure
    met_by: Status | None  # the status of a run that met this limit
    cause: str  # the same in words


MEMORY = Resource(
    "Memory", "memory", "bytes", "memory_bytes", "requirement_memory_bytes", 1, "memory_peak_bytes", "memory_quality",
    Status.OOM, "out of memory",
)  # fmt: skip
CPU = Resource("CPU", "cpus", "percent", "cpus", "requirement_cpus", 100, "cpu_peak_percent", "cpu_quality", None, "")
RUNTIME = Resource(
    "Runtime", "runtime", "seconds", "runtime_seconds", "requirement_runtime_seconds", 1, "wall_seconds", "",
    Status.TIMEOUT, "timeout",
)  # fmt: skip
RESOURCES = (MEMORY, CPU, RUNTIME)

Key = tuple[str | None, int | None, int | str]
"""One job of one run of a workflow, whatever the attempt; or a run outside of workflows."""


class Job(NamedTuple):
    """Whose run it was."""

    id: int | str  # its number in the workflow; of a run outside of workflows, the run's id
    name: str
    step: str  # its name as the spec has it, the same for all jobs of a sweep
    attempt: int
    run: str  # the run's id: numbers of jobs are the same in every run of a workflow
    workflow: str | None = None
    workflow_run: int | None = None

    @property
    def key(self) -> Key:
        return self.workflow, self.workflow_run, self.id


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
    """A job that did not complete, for another reason than what it asked for."""

    job: Job
    status: str
    cause: str


class Tally(NamedTuple):
    """How many jobs there are; one of several attempts is one."""

    total: int
    running: int = 0
    asked_nothing: int = 0  # of those that do not run


class Checked(NamedTuple):
    lines: list[Line]
    failures: list[Failure]
    tally: Tally

    @property
    def violations(self) -> list[Line]:
        return [line for line in self.lines if line.is_violation]


def check(
    rows: Iterable[Row],
    min_over: float = 1.0,
    *,
    everything: bool = True,
    asks: Mapping[Key, Requirement] = {},
) -> Checked:
    """Every resource that a job asked for and of which is known what it used; over-use from `min_over` percent on.

    Rows are newest first; `asks` tells what jobs of several attempts ask for today. Without `everything` the violations
    alone. Lines come workflow by workflow, in the order of the jobs' numbers; other runs in that of the rows.
    """
    jobs: dict[Key, list[tuple[Job, Row]]] = {}
    for row in rows:
        job = job_of(row)
        jobs.setdefault(job.key, []).append((job, row))
    lines: list[Line] = []
    failures: list[Failure] = []
    running = asked_nothing = 0
    for key in _ordered(jobs):
        attempts = sorted(jobs[key], key=lambda attempt: attempt[0].attempt)
        # Of two of the same number, the newest.
        job, last = max(jobs[key], key=lambda attempt: attempt[0].attempt)
        for earlier, row in attempts:
            if row is not last:
                unsettled = _unsettled(row, asks.get(key), attempts[0][1])
                lines += _lines(row, earlier, min_over, everything, unsettled)
        found = list(_lines(last, job, min_over, everything, RESOURCES))
        lines += found
        status = Status(last["status"])
        running += status is Status.RUNNING
        asked_nothing += status is not Status.RUNNING and not any(last.get(resource.asked) for resource in RESOURCES)
        if status not in _NO_FAILURE and not any(line.cause for line in found):
            cause = in_words(Outcome(status, last.get("exit_code"), last.get("signal")))
            failures.append(Failure(job, status, cause))
    return Checked(lines, failures, Tally(len(jobs), running, asked_nothing))


def _ordered(keys: Iterable[Key]) -> list[Key]:
    """Runs of workflows as they come, each with its jobs in the order of their numbers."""
    places: dict[tuple[str | None, int | None], int] = {}
    for workflow, run, _ in (keys := list(keys)):
        places.setdefault((workflow, run), len(places))
    return sorted(keys, key=lambda key: (places[key[:2]], key[2] if isinstance(key[2], int) else 0))


def _unsettled(row: Row, asks: Requirement | None, first: Row) -> list[Resource]:
    """The resources of an earlier attempt of which the job asks for no more today."""
    found = []
    for resource in RESOURCES:
        today = first.get(resource.asked) if asks is None else getattr(asks, resource.field)
        if today is not None and today <= row.get(resource.asked, 0):
            found.append(resource)
    return found


def job_of(row: Row) -> Job:
    part: Row = row.get("workflow_job") or {}
    name = str(row["name"])
    step, attempt = str(part.get("step", name)), int(part.get("attempt", 1))
    number = part["job_id"] if part else row["id"]
    return Job(number, name, step, attempt, row["id"], row.get("workflow"), row.get("workflow_run"))


def _lines(row: Row, job: Job, min_over: float, everything: bool, resources: Iterable[Resource]) -> Iterator[Line]:
    for resource in resources:
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
                is_over = is_over_cpus(row, asked)
            if is_over or everything:
                yield Line(job, resource, specified, used, is_at_least(row, resource), is_over, None)


def is_at_least(row: Row, resource: Resource) -> bool:
    """Whether a run may have used more than is known.

    A peak of CPU that is the mean is one: the run was too short for a rate (`analyse.headline`).
    """
    if resource is CPU and row.get(CPU.used) is not None and row.get(CPU.used) == row.get("cpu_mean_percent"):
        return True
    return bool(resource.quality) and row.get(resource.quality) == Quality.AT_LEAST.value


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


def is_over_cpus(row: Row, requested: float) -> bool:
    """Whether a run used more than the CPUs it requested; never of one that the kernel kept to them.

    `row` has `cpu_mean_percent cpu_peak_percent wall_seconds enforced`, as far as they are known.
    """
    return CPU.key not in row.get("enforced", ()) and uses_more_cpus(row, requested)


def uses_more_cpus(row: Row, cpus: float, peak_over: float = PEAK_OVER) -> bool:
    """Whether a run is sure to have used more than so many CPUs, whichever moments its CPU time was read at.

    Of two things one must hold:

    - Its mean is above them, by more than accounts of CPU time differ (`MEAN_OVER`) and by `SHORTEST_OVER` at least.
      The mean is the CPU time of the whole run over its wall time: gaps between readings have no part in it.
    - A peak is further above them than a limit around the job and counters that lag behind can make it. A peak is the
      CPU time between two looks over the time between them, a second or more, and never too high for late looks
      (`collectors.rate`). But a limit that others set lets through one share more than its rate (`peak_over`), and the
      kernel adds to a counter once a tick: what a look missed of each CPU the next one finds (`TICK_LAG`). A run
      shorter than a second has no such peak.
    """
    asked = 100 * cpus
    mean, wall, peak = row.get("cpu_mean_percent"), row.get("wall_seconds"), row.get("cpu_peak_percent")
    if mean is not None and wall and mean > asked * MEAN_OVER and (mean - asked) / 100 * wall > SHORTEST_OVER:
        return True
    if peak is None or (wall and wall < _SPAN):
        return False
    return bool(peak > peak_over * asked + TICK_LAG * math.ceil(cpus))
