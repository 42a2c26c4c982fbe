"""What `check` found, in words: lines of the table, objects of the JSON, and the sentences around them.

A GB is 2^30 bytes, as in Slurm and everywhere here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any

from jobmeter.analyse.check import CheckedJob, Failure, Line, Tally
from jobmeter.analyse.resource import CPU, MEMORY
from jobmeter.analyse.waste import Waste
from jobmeter.report.requests import gigabytes, waste_text
from jobmeter.report.table import printable

HEADINGS = ("Job ID", "Job Name", "Resource", "Specified", "Peak Used", "Over-Utilization")
UNITS = ("text", "text", "text", "count", "count", "count")
MAY_BE_CUT = ("Job Name", "Workflow")
WORKFLOW = "Workflow"
"""The column before the others, where jobs are of several runs of workflows."""
_EVEN = "+0.0%"


def cells(line: Line) -> list[str]:
    """One line of the table."""
    return [str(line.job.id), job_name(line.job), line.resource.name, specified(line), peak_used(line), over(line)]


def workflow_name(job: CheckedJob) -> str:
    """Which run of which workflow, where there are several; `-` outside of workflows."""
    return "-" if job.workflow is None else f"{printable(job.workflow)} run {job.workflow_run}"


def style(field: str, content: str) -> str:
    """Red for what is above the request."""
    return "red" if field == HEADINGS[-1] and not content.startswith("-") and content != _EVEN else ""


def job_name(job: CheckedJob) -> str:
    name = printable(job.name)
    return f"{name} (attempt {job.attempt})" if job.attempt > 1 else name


def specified(line: Line) -> str:
    if line.resource is CPU:
        cores = line.specified / 100
        return f"{line.specified:.10g}% ({cores:.10g} {'core' if cores == 1 else 'cores'})"
    return amount(line.specified, line.resource.unit)


def peak_used(line: Line) -> str:
    return ("≥ " if line.at_least else "") + amount(line.used, line.resource.unit)


def over(line: Line) -> str:
    """`+31.3%`; of a run that met its limit, how it ended."""
    return line.cause or signed_percent(line.percent)


def signed_percent(value: float) -> str:
    # A half goes up: `+31.25` is `+31.3%`, where formatting alone would make it even.
    shown = floor(abs(value) * 10 + 0.5) / 10
    return f"{'-' if value < 0 and shown else '+'}{shown:.1f}%"


def amount(value: float, unit: str) -> str:
    """`8.00 GB`, `950.5%`, `2h 0m 0s`."""
    if unit == "bytes":
        return gigabytes(value)
    return f"{value:.1f}%" if unit == "percent" else duration(value)


def duration(value: float) -> str:
    """`2h 0m 0s`, `45m 0s`, `12s`; below a minute with a fraction if there is one."""
    if value < 60 and value != int(value):
        return f"{value:.1f}s" if value >= 1 else f"{value:.2f}s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes}m {seconds}s"
    return f"{minutes}m {seconds}s" if minutes else f"{seconds}s"


def headline(violations: Sequence[Line], jobs: Tally) -> str:
    """`2 of 14 jobs used more than they requested`."""
    over = len({line.job.key for line in violations})
    if jobs.total == 1:
        return _of_one(over, jobs)
    running = f"; {_are(jobs.running)} still running" if jobs.running else ""
    if over:
        return f"{over:,} of {jobs.total:,} jobs used more than {_they(over)} requested{running}"
    within = jobs.total - jobs.running - jobs.requested_nothing
    if not within:
        if jobs.running == jobs.total:
            return f"All {jobs.total:,} jobs are still running"
        return f"None of {jobs.total:,} jobs requested anything{running}"
    if within == jobs.total:
        return f"All {within:,} jobs stayed within what they requested"
    nothing = f"; {jobs.requested_nothing:,} requested nothing" if jobs.requested_nothing else ""
    return f"{within:,} of {jobs.total:,} jobs stayed within what {_they(within)} requested{nothing}{running}"


def headline_of_many(violations: Sequence[Line], total: int) -> str:
    """The same where not every job was checked."""
    if violations:
        return headline(violations, Tally(total))
    return f"None of {total:,} jobs used more than it requested"


def _of_one(over: int, jobs: Tally) -> str:
    if over:
        return "The job used more than it requested"
    if jobs.running:
        return "The job is still running"
    return "The job requested nothing" if jobs.requested_nothing else "The job stayed within what it requested"


def _they(count: int) -> str:
    return "it" if count == 1 else "they"


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count:,} are"


def failure_lines(failures: Sequence[Failure], *, with_workflow: bool = False) -> list[str]:
    """One line per job, aligned: its number, its name and how it failed."""
    parts = [
        [*([workflow_name(one.job)] if with_workflow else []), str(one.job.id), job_name(one.job), one.cause]
        for one in failures
    ]
    widths = [max(map(len, column)) for column in zip(*parts)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in parts]


def opportunity_text(waste: Waste) -> str:
    """`preprocess: requested 8.00 GB, used 1.20 GB at most: 6.5 GB less would free 1.08 GB-h a run`."""
    return f"{printable(waste.name)}: {waste_text(waste)}"


def line_object(line: Line) -> dict[str, Any]:
    """A line as JSON: as people read it, and as numbers."""
    fields = {
        **job_object(line.job),
        "resource_type": line.resource.name,
        "specified": specified(line),
        "peak_used": peak_used(line),
        "over_utilization": over(line),
        "specified_value": line.specified,
        "peak_used_value": line.used,
        "over_utilization_percent": round(line.percent, 4),
        "unit": line.resource.unit,
        "at_least": line.at_least,
    }
    return {**fields, "cause": line.cause} if line.cause else fields


def job_object(job: CheckedJob) -> dict[str, Any]:
    """The job: `job_id` is its number in the workflow, `run` the id of this run of it."""
    of = {"run": job.run, "workflow_id": job.workflow, "run_id": job.workflow_run}
    return {"job_id": job.id, "job_name": job.name, "attempt": job.attempt, **of}


def failure_object(failure: Failure) -> dict[str, Any]:
    return {**job_object(failure.job), "status": failure.status, "cause": failure.cause}


def opportunity_object(waste: Waste) -> dict[str, Any]:
    """`specified_value` and the like are bytes or CPUs, `freed` is GB-hours or core-hours a run."""
    is_memory = waste.resource is MEMORY
    return {
        "job_name": waste.name,
        "resource_type": waste.resource.name,
        "runs": waste.runs,
        "specified_value": waste.requested,
        "peak_used_value": waste.used,
        "less_value": waste.less,
        "unit": "bytes" if is_memory else "cpus",
        "freed_per_run": round(waste.freed / 2**30 if is_memory else waste.freed, 6),
        "freed_unit": "GB-h" if is_memory else "core-h",
        "text": opportunity_text(waste),
    }
