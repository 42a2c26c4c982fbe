"""What `workflow run` says: of failures as they happen, and of the whole at the end. All of it to stderr."""

from __future__ import annotations

import math
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobmeter.analyse.check import Line, check
from jobmeter.analyse.outcome import in_words
from jobmeter.analyse.waste import wasted_requests
from jobmeter.cli.shared.output import print_to_stderr, warn
from jobmeter.model import Requirement, Status
from jobmeter.report.check import opportunity_text
from jobmeter.report.requests import TOO_LITTLE, TOO_MUCH, overuse_text
from jobmeter.report.table import plain_table
from jobmeter.units import text
from jobmeter.workflow.attempts import Attempt, latest
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.plan import Job, Plan
from jobmeter.workflow.plots import Plots
from jobmeter.workflow.run import Result
from jobmeter.workflow.service import Prepared, WorkflowListener
from jobmeter.workflow.summary import Recovered, WorkflowSummary, summarise

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 20
"""Jobs that the summary lists one by one; of more only the costliest."""
_FINDINGS = 5
_TAIL = 4096


class RunMessages(WorkflowListener):
    """Reports at once what failed, and why; at the end the summary."""

    def __init__(self, prepared: Prepared, *, quiet: bool) -> None:
        assert prepared.directory is not None, "it was not claimed"
        self.console: Console | None = None
        self._plan = prepared.plan
        self._before = prepared.before
        self._directory = prepared.directory
        self._quiet = quiet
        self._blocked = 0

    def ended(self, attempt: Attempt, why: str | None, again: Requirement | None) -> None:
        if attempt.status in (Status.COMPLETED, Status.CANCELLED):
            return
        failure = f"{attempt.name}: {why}" if why else f"{attempt.name} {in_words(attempt.outcome)}"
        if again is not None:
            self._say(f"{failure}; trying again{_more(attempt, again)}")
            return
        _, stderr = self._directory.log_paths(attempt.name, attempt.attempt)
        last = "" if why else last_line(stderr)
        self._say(f"{failure}{f': {last}' if last else ''}  [{stderr}]")

    def blocked(self, job: Job, by: Job) -> None:
        self._blocked += 1
        if self._blocked <= _SHOWN:
            self._say(f"{job.name} is blocked: it needs {by.name}, which failed")
        elif self._blocked == _SHOWN + 1:
            self._say("more jobs are blocked; `jobmeter workflow status` lists them")

    def finished(self, result: Result) -> None:
        self.console = None  # the display is gone
        if not self._quiet:
            numbers = {job.number for job in self._plan.jobs}  # some may have left the spec since
            attempts = [each for each in (*self._before, *result.attempts) if each.number in numbers]
            print_summary(self._plan, self._directory, result, attempts)

    def plotted(self, plots: Plots) -> None:
        part = f" (the costliest {plots.drawn} of {plots.runs:,} jobs)" if plots.drawn < plots.runs else ""
        self._say(f"plots: {plots.path}{part}")

    def _say(self, message: str) -> None:
        if not self._quiet:
            self.warn(message)

    def warn(self, message: str) -> None:
        """Print a line, above the display if there is one."""
        if self.console is not None:
            self.console.print(f"jobmeter: {message}", markup=False, highlight=False, soft_wrap=True)
        else:
            warn(message)


def _more(attempt: Attempt, again: Requirement) -> str:
    grown = [
        text(value, unit)
        for value, before, unit in (
            (again.memory_bytes, attempt.memory_bytes, "bytes"),
            (again.runtime_seconds, attempt.runtime_seconds, "seconds"),
        )
        if value is not None and value != before
    ]
    return f" with {', '.join(grown)}" if grown else ""


def last_line(path: str) -> str:
    """The last line of a log that says something, printable and short."""
    try:
        with open(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _TAIL, 0))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in said[-1])[:200] if said else ""


def print_summary(plan: Plan, directory: RunDirectory, result: Result, attempts: Sequence[Attempt]) -> None:
    """The summary of the whole workflow."""
    summary = summarise(plan.jobs, attempts)
    lines = [
        f"jobmeter: workflow {plan.name} {_fate(result, len(plan.jobs), attempts)}",
        *_job_table(plan, attempts, summary),
        *_totals(result, summary),
        *request_lines(plan, attempts, summary),
        *_next(directory, result),
    ]
    print_to_stderr("\n".join(lines))


def _fate(result: Result, jobs: int, attempts: Sequence[Attempt]) -> str:
    counts: Counter[str] = Counter(attempt.status for attempt in latest(list(attempts)).values())
    counts["blocked"] = len(result.blocked)
    counts["waiting"] = result.not_begun
    parts = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
    verdict = "completed" if result.succeeded else "was stopped" if result.stopped else "failed"
    return f"{verdict} after {text(result.wall_seconds, 'seconds')}: {parts} of {jobs} job{'s' * (jobs != 1)}"


def _job_table(plan: Plan, attempts: Sequence[Attempt], summary: WorkflowSummary) -> list[str]:
    few = len(plan.jobs) <= _SHOWN
    shown = list(latest(list(attempts)).values()) if few else summary.costliest
    if not shown:
        return []
    title = [] if few else ["  the costliest:"]
    units = ("text", "text", "seconds", "seconds", "percent", "bytes", "text")
    rows = [_row(attempt) for attempt in sorted(shown, key=lambda each: each.number if few else 0)]
    table = plain_table(("job", "status", "time", "CPU", "CPU %", "memory", "of what it requested"), units, rows)
    return title + [f"  {line}" for line in table]


def _row(attempt: Attempt) -> list[str]:
    return [
        attempt.name if attempt.attempt == 1 else f"{attempt.name} (attempt {attempt.attempt})",
        attempt.status,
        _text(attempt.wall_seconds, "seconds"),
        _text(attempt.cpu_seconds, "seconds"),
        _text(attempt.cpu_mean_percent, "percent"),
        _text(attempt.memory_peak_bytes, "bytes"),
        _shares(attempt),
    ]


def _text(value: float | None, unit: str) -> str:
    return "" if value is None else text(value, unit)


def _shares(attempt: Attempt) -> str:
    shares = (
        ("CPU", attempt.cpu_mean_percent, attempt.cpus and attempt.cpus * 100),
        ("memory", attempt.memory_peak_bytes, attempt.memory_bytes),
        ("time", attempt.wall_seconds, attempt.runtime_seconds),
    )
    return ", ".join(
        f"{name} {_percent(used / requested)}" for name, used, requested in shares if used is not None and requested
    )


def _totals(result: Result, summary: WorkflowSummary) -> list[str]:
    totals = summary.totals
    lines = []
    if totals.core_hours is not None:
        share = _share(totals.cpu_efficiency, "{} of the CPU time they requested was used")
        lines.append(f"  CPU        {_amount(totals.core_hours, 'core')}{share}")
    if totals.gb_hours is not None:
        share = _share(totals.memory_efficiency, "at their peaks jobs used {} of what they requested")
        lines.append(f"  memory     {_amount(totals.gb_hours, 'GB')}{share}")
    if result.concurrency_peak:
        lines.append(f"  at a time  {result.concurrency_peak} job{'s' * (result.concurrency_peak > 1)} at most")
    if len(summary.critical_path) > 1:
        chain = summary.critical_path
        steps = [*chain[:3], f"… {len(chain) - 5} more …", *chain[-2:]] if len(chain) > 6 else chain
        lines.append(f"  longest    {' → '.join(steps)}, {text(summary.critical_seconds, 'seconds')}")
    return lines


def _share(share: float | None, words: str) -> str:
    return "" if share is None else f"; {words.format(_percent(share))}"


def _amount(hours: float, what: str) -> str:
    """`1.25 core-hours`; of very little the seconds, so that a number stays a number."""
    return f"{hours:,.2f} {what}-hours" if hours >= 0.01 else f"{hours * 3600:.3g} {what}-seconds"


def _percent(share: float) -> str:
    return "under 1 %" if 0 < share < 0.01 else text(100 * share, "percent")


def request_lines(plan: Plan, attempts: Sequence[Attempt], summary: WorkflowSummary) -> list[str]:
    """Who requested too little and who too much, and what to write instead."""
    last = latest(list(attempts))
    rows = [attempt.as_row() for attempt in last.values() if attempt.status != Status.CANCELLED]
    over = check(rows, everything=False).lines
    lines = [f"  {TOO_LITTLE:<10} {_over(line)}" for line in over[:_FINDINGS]]
    if len(over) > _FINDINGS:
        lines.append(f"  {TOO_LITTLE:<10} … and {len(over) - _FINDINGS} more: jobmeter check")
    lines += [f"  {TOO_MUCH:<10} {opportunity_text(each)}" for each in wasted_requests(rows)[:_FINDINGS]]
    lines += [f"  advice     {_recovered(each)}" for each in summary.recovered]
    if over:
        near = os.path.relpath(plan.path)
        spec = plan.path if near.startswith("..") else near
        lines.append(f"  advice     jobmeter check --fix {shlex.quote(spec)} writes what they need")
    return lines


def _over(line: Line) -> str:
    return f"{line.job.name}: {overuse_text(line.verdict)}"


def _next(directory: RunDirectory, result: Result) -> list[str]:
    name = directory.workflow
    commands = f"jobmeter check {name} · jobmeter size {name} · jobmeter workflow results {name}"
    if not result.succeeded:
        commands = f"jobmeter workflow resume {name}"
    return [f"  logs       {directory.logs}", f"  next       {commands}"]


def _recovered(each: Recovered) -> str:
    write = []
    if each.memory_bytes is not None:
        write.append(f"memory: {math.ceil(each.memory_bytes / 2**20)}m")
    if each.runtime_seconds is not None:
        write.append(f"runtime: {math.ceil(each.runtime_seconds)}s")
    advice = f" Write {' and '.join(write)} in the spec." if write else ""
    return f"{each.step} took {each.attempts} attempts.{advice}"
