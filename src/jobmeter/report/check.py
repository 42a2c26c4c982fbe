"""What `check` found, in words: lines of the table, objects of the JSON, and the sentences around them."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any

from jobmeter.analyse.check import CheckedJob, Failure, JobVerdict, Tally
from jobmeter.analyse.overuse import Verdict
from jobmeter.analyse.resource import CPU, GPU, MEMORY
from jobmeter.analyse.waste import Waste
from jobmeter.report.requests import waste_text
from jobmeter.report.table_layout import Column
from jobmeter.terminal import printable
from jobmeter.units import text

COLUMNS = (
    Column("job_id", essential=True),
    Column("job_name", essential=True, shortens=True),
    Column("resource_type", essential=True),
    Column("specified", "count"),
    Column("peak_used", "count"),
    Column("over_utilization", "count", essential=True),
)
"""The names are those of the fields in the JSON."""
WORKFLOW = Column("workflow", essential=True, shortens=True)
"""The column before the others, if the jobs are of several runs of workflows."""
_EVEN = "+0.0 %"


def cells(judged: JobVerdict) -> list[str]:
    """One line of the table."""
    job, verdict = judged
    return [str(job.id), job_name(job), verdict.resource.name, specified(verdict), peak_used(verdict), over(verdict)]


def workflow_name(job: CheckedJob) -> str:
    """The workflow and the number of its run, for the column `workflow`; `-` outside of workflows."""
    return "-" if job.workflow is None else f"{printable(job.workflow)} run {job.workflow_run}"


def style(field: str, content: str) -> str:
    """Red for what is above the request."""
    return "red" if field == COLUMNS[-1].name and not content.startswith("-") and content != _EVEN else ""


def job_name(job: CheckedJob) -> str:
    name = printable(job.name)
    return f"{name} (attempt {job.attempt})" if job.attempt > 1 else name


def specified(verdict: Verdict) -> str:
    if verdict.resource is CPU:
        cores = verdict.requested / CPU.each
        return f"{text(verdict.requested, CPU.unit)} ({cores:.10g} core{'s' * (cores != 1)})"
    return text(verdict.requested, verdict.resource.unit)


def peak_used(verdict: Verdict) -> str:
    return ("≥ " if verdict.at_least else "") + text(verdict.used, verdict.resource.unit)


def over(verdict: Verdict) -> str:
    """`+31.3 %`; of a run that met its limit, how it ended."""
    return verdict.cause or signed_percent(verdict.percent)


def signed_percent(value: float) -> str:
    # Round half up: 31.25 becomes `+31.3 %`, where formatting alone would round half to even.
    shown = floor(abs(value) * 10 + 0.5) / 10
    return f"{'-' if value < 0 and shown else '+'}{shown:.1f} %"


def headline(violations: Sequence[JobVerdict], jobs: Tally) -> str:
    """`2 of 14 jobs used more than they requested`."""
    over = len({each.job.key for each in violations})
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


def headline_of_many(violations: Sequence[JobVerdict], total: int) -> str:
    """The headline if not every job was checked."""
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
    """`preprocess: requested 8 GiB, used 1.2 GiB at most: 6.5 GiB less would free 1.08 GiB-h a run`."""
    return f"{printable(waste.name)}: {waste_text(waste)}"


def verdict_object(judged: JobVerdict) -> dict[str, Any]:
    """A line of the table as JSON: the amounts as text for people, and as numbers."""
    job, verdict = judged
    fields = {
        **job_object(job),
        "resource_type": verdict.resource.name,
        "specified": specified(verdict),
        "peak_used": peak_used(verdict),
        "over_utilization": over(verdict),
        "specified_value": verdict.requested,
        "peak_used_value": verdict.used,
        "over_utilization_percent": round(verdict.percent, 4),
        "unit": verdict.resource.unit,
        "at_least": verdict.at_least,
    }
    return {**fields, "cause": verdict.cause} if verdict.cause else fields


def job_object(job: CheckedJob) -> dict[str, Any]:
    """The job as JSON: `job_id` is its number in the workflow, `run` the id of this run of the job."""
    of = {"run": job.run, "workflow_id": job.workflow, "run_id": job.workflow_run}
    return {"job_id": job.id, "job_name": job.name, "attempt": job.attempt, **of}


def failure_object(failure: Failure) -> dict[str, Any]:
    return {**job_object(failure.job), "status": failure.status, "cause": failure.cause}


def opportunity_object(waste: Waste) -> dict[str, Any]:
    """`specified_value` and the like are bytes, CPUs or GPUs, `freed` is GiB-hours, core-hours or GPU-hours a run."""
    is_memory = waste.resource is MEMORY
    hours = "GPU-h" if waste.resource is GPU else "core-h"
    return {
        "job_name": waste.name,
        "resource_type": waste.resource.name,
        "runs": waste.runs,
        "specified_value": waste.requested,
        "peak_used_value": waste.used,
        "less_value": waste.less,
        "unit": "bytes" if is_memory else waste.resource.key,
        "freed_per_run": round(waste.freed / 2**30 if is_memory else waste.freed, 6),
        "freed_unit": "GiB-h" if is_memory else hours,
        "text": opportunity_text(waste),
    }
