"""The report of a run of a workflow, from its plan and the stored runs of its jobs: one page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.analyse.outcome import in_words
from jobmeter.analyse.overuse import Verdict, is_at_least, overuses, used_amount
from jobmeter.analyse.resource import CPU, MEMORY, RUNTIME, Resource
from jobmeter.errors import JobmeterError
from jobmeter.links import open_output
from jobmeter.model import Status
from jobmeter.report.workflow.job_entry import AttemptEntry, JobEntry, Load, ResourceUsage, WorkflowReport
from jobmeter.times import parse_moment
from jobmeter.units import share_text, text
from jobmeter.workflow.attempts import Attempt, latest, of_row
from jobmeter.workflow.boxes import step_boxes
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.graph import critical_path
from jobmeter.workflow.history import StoredRun as StoredWorkflow
from jobmeter.workflow.history import restored_plan
from jobmeter.workflow.status import FAILED, JobStatus
from jobmeter.workflow.summary import totals

if TYPE_CHECKING:
    from jobmeter.store import Store

_NO_CURVES = (
    "No curves of these jobs are stored. To store them, write “granularity: time_series” or “generate_plots: true” "
    "into the resource_monitor of the spec."
)
_MEAN = {CPU.key: "cpu_mean_percent", MEMORY.key: "memory_mean_bytes"}
_LITTLE = 0.1
"""Core-hours or GiB-hours; smaller amounts are shown in seconds."""
_CHAIN = 12
"""How many jobs of the critical path are named; in a longer path, those in the middle are only counted."""


class Written(NamedTuple):
    """A page that was written."""

    path: str
    jobs: int
    with_curves: int


def draw_report(
    directory: RunDirectory, location: str, runs: Collection[str], warn: Callable[[str], None]
) -> Written | None:
    """Write the report of these runs to `plots.html` in the directory of the run, as `generate_plots` requests.

    The workflow is over: if something goes wrong, there is only a warning of one line, and None is returned.
    """
    path = f"{directory.path}/plots.html"
    try:
        from jobmeter.store import open_store

        return write_report(path, open_store(location, warn), directory, frozenset(runs))
    except (JobmeterError, ImportError) as error:
        warn(f"no plots: {error}")
    except OSError as error:
        warn(f"no plots: {path}: {error.strerror}")
    return None


def write_report(path: str, store: Store, directory: RunDirectory, runs: Collection[str] | None = None) -> Written:
    """Write the report of a run of a workflow; with `runs`, only of these attempts.

    Raises OSError if it cannot be written, JobmeterError if no job was run.
    """
    from jobmeter.report.plot.curves import curves_of
    from jobmeter.report.workflow.page import report_page
    from jobmeter.store import Selection

    of_this_run = Selection(workflow=directory.workflow, workflow_run=directory.run_id, descending=False)
    rows = [row for row in store.runs(of_this_run) if runs is None or row["id"] in runs]
    if not rows:
        raise JobmeterError("no job was run")
    curves = curves_of(store, rows)
    attempts = sorted(map(of_row, rows), key=lambda each: (each.number, each.attempt, each.started))
    stored = StoredWorkflow(directory, directory.plan(), attempts)
    report = workflow_report(stored, has_curves=any(job.panels for job in curves))
    boxes, _ = step_boxes(restored_plan(stored), {job.number: job.status for job in report.jobs})
    with open(open_output(path), "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(report_page(report, boxes, curves))
    return Written(path, len(report.jobs), sum(bool(job.panels) for job in curves))


def workflow_report(stored: StoredWorkflow, *, has_curves: bool = True) -> WorkflowReport:
    """What the page shows, except the curves."""
    plan, attempts = restored_plan(stored), stored.attempts
    status = stored.status()
    start = min((parse_moment(each.started).timestamp() for each in attempts), default=0.0)
    by_number: dict[int, list[AttemptEntry]] = {}
    seconds: dict[int, float] = {}
    for each in attempts:
        begin, wall = parse_moment(each.started).timestamp() - start, each.wall_seconds or 0.0
        entry = AttemptEntry(each.run, each.attempt, each.status, in_words(each.outcome), begin, wall)
        by_number.setdefault(each.number, []).append(entry)
        seconds[each.number] = seconds.get(each.number, 0.0) + wall
    chain = critical_path(plan.jobs, seconds)
    scripts = {job.number: job.script for job in plan.jobs}
    steps = {job.number: job.step for job in plan.jobs}
    last = latest(list(attempts))
    jobs = [
        _job_entry(each, last.get(each.number), by_number.get(each.number, []), each.number in chain, steps, scripts)
        for each in status.jobs
    ]
    span = max((each.begin + each.seconds for entries in by_number.values() for each in entries), default=0.0)
    names = {job.number: job.name for job in plan.jobs}
    return WorkflowReport(
        name=plan.name,
        caption=_caption(stored, status.state, plan.description),
        figures=_figures(stored, jobs, span, sum(seconds.get(number, 0.0) for number in chain)),
        critical=_chain_text([names[number] for number in chain], [seconds.get(number, 0.0) for number in chain]),
        jobs=jobs,
        loads=_loads(stored, start),
        seconds=span,
        missing_curves="" if has_curves else _NO_CURVES,
    )


def _job_entry(
    status: JobStatus,
    last: Attempt | None,
    entries: Sequence[AttemptEntry],
    critical: bool,
    steps: dict[int, str],
    scripts: dict[int, str],
) -> JobEntry:
    row = last.as_row() if last is not None else {}
    verdicts = {verdict.resource.key: verdict for verdict in overuses(row)} if last is not None else {}
    cpu, memory, runtime = (_usage(row, resource, verdicts.get(resource.key)) for resource in (CPU, MEMORY, RUNTIME))
    number = status.number
    return JobEntry(
        number, status.name, steps[number], status.status, status.reason, scripts[number], tuple(entries),
        cpu, memory, runtime, critical and bool(entries),
    )  # fmt: skip


def _usage(row: dict[str, object], resource: Resource, over: Verdict | None) -> ResourceUsage:
    requested = row.get(resource.requested)
    mean = row.get(_MEAN[resource.key]) if resource.key in _MEAN else None
    used = used_amount(row, resource) if row else None
    words = ""
    if over is not None:
        words = over.cause or f"{over.percent:.0f} % more than requested"
    return ResourceUsage(
        resource.unit,
        None if requested is None else float(requested) * resource.each,  # type: ignore[arg-type]
        used,
        None if mean is None else float(mean),  # type: ignore[arg-type]
        used is not None and is_at_least(row, resource),
        words,
    )


def _caption(stored: StoredWorkflow, state: str, description: str) -> str:
    started = str(stored.plan["started"])[:19].replace("T", " ")
    run = f"run {stored.directory.run_id} of {stored.directory.workflow}"
    return " · ".join(filter(None, (description, run, state, f"started {started} UTC")))


def _figures(
    stored: StoredWorkflow, jobs: Sequence[JobEntry], span: float, critical_seconds: float
) -> list[tuple[str, str]]:
    sums = totals(stored.attempts)
    counts = stored.status().counts
    failures = sum(counts.get(status, 0) for status in FAILED)
    # Not of `stored.attempts`: these also have runs of recovery scripts, and of jobs that the spec no longer has.
    retries = sum(max(len(job.attempts) - 1, 0) for job in jobs)
    over = sum(any(usage.over for usage in (job.cpu, job.memory, job.runtime)) for job in jobs)
    figures: list[tuple[str, str | None]] = [
        ("jobs", f"{counts.get(Status.COMPLETED, 0):,} of {len(jobs):,} completed"),
        ("failures", f"{failures:,}"),
        ("retries", f"{retries:,}" if retries else None),
        ("over their request", f"{over:,}"),
        ("wall time", text(span, "seconds")),
        ("critical path", text(critical_seconds, "seconds")),
        _hours("core", sums.core_hours, sums.core_hours_requested),
        _hours("GiB", sums.gb_hours, sums.gb_hours_requested),
        ("CPU efficiency", _percent(sums.cpu_efficiency)),
        ("memory efficiency", _percent(sums.memory_efficiency)),
    ]
    return [(name, words) for name, words in figures if words is not None]


def _hours(unit: str, used: float | None, requested: float | None) -> tuple[str, str | None]:
    """`core-hours`, with what was used and what was requested; very small amounts as `core-seconds`."""
    if used is None:
        return f"{unit}-hours", None
    name, by = ("hours", 1.0) if max(used, requested or 0.0) >= _LITTLE else ("seconds", 3600.0)
    return f"{unit}-{name}", f"{used * by:.3g}" + (f" of {requested * by:.3g}" if requested is not None else "")


def _percent(share: float | None) -> str | None:
    return None if share is None else share_text(share)


def _chain_text(names: Sequence[str], seconds: Sequence[float]) -> str:
    if not any(seconds):
        return ""
    words = [f"{name} ({text(each, 'seconds')})" for name, each in zip(names, seconds)]
    if len(words) > _CHAIN:
        half = _CHAIN // 2
        words = [*words[:half], f"… {len(words) - 2 * half} more …", *words[-half:]]
    return f"{' → '.join(words)}, {text(sum(seconds), 'seconds')} together"


def _loads(stored: StoredWorkflow, start: float) -> list[Load]:
    """What all attempts together requested and used over time, of each resource that a job requested or used."""
    capacity = stored.plan.get("capacity", {})
    loads = []
    for title, resource, figure in (("CPU", CPU, "cpu_mean_percent"), ("Memory", MEMORY, "memory_peak_bytes")):
        changes: dict[float, tuple[float, float]] = {}
        for each in stored.attempts:
            requested = (getattr(each, resource.field) or 0.0) * resource.each
            used = each.figure(figure) or 0.0
            begin = parse_moment(each.started).timestamp() - start
            for at, sign in ((begin, 1), (begin + (each.wall_seconds or 0.0), -1)):
                before = changes.get(at, (0.0, 0.0))
                changes[at] = (before[0] + sign * used, before[1] + sign * requested)
        limit = capacity.get(resource.field)
        load = Load(title, resource.unit, [], [], [], None if limit is None else limit * resource.each)
        level = (0.0, 0.0)
        for at in sorted(changes):
            if at > 0:
                load.times.append(at)
                load.used.append(max(level[0], 0.0))
                load.requested.append(max(level[1], 0.0))
            level = (level[0] + changes[at][0], level[1] + changes[at][1])
        if load.times and (any(load.used) or any(load.requested)):
            loads.append(load)
    return loads
