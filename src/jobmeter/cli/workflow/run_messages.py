"""The messages of `workflow run`, on stderr: failures as they happen, and a summary at the end."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobmeter.analyse.check import JobVerdict, Key, check
from jobmeter.analyse.outcome import in_words
from jobmeter.analyse.resource import RESOURCES
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.analyse.waste import wasted_requests
from jobmeter.byte_text import bytes_to_text
from jobmeter.cli.shared.output import print_to_stderr, stderr_width, warn
from jobmeter.errors import StoreError
from jobmeter.model import Requirement, Status
from jobmeter.report.check import opportunity_text
from jobmeter.report.requests import TOO_LITTLE, TOO_MUCH, overuse_text
from jobmeter.report.run import HANGING
from jobmeter.report.size import quantity
from jobmeter.report.table import fitted_lines
from jobmeter.report.table_layout import Column
from jobmeter.terminal import printable
from jobmeter.units import share_text, text
from jobmeter.workflow.attempts import Attempt, latest
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.plan import Job, Plan
from jobmeter.workflow.report import Written
from jobmeter.workflow.result import Result
from jobmeter.workflow.service import Prepared, WorkflowListener
from jobmeter.workflow.summary import WorkflowSummary, summarise
from jobmeter.working_directory import near_path

if TYPE_CHECKING:
    from rich.console import Console

    from jobmeter.record.cluster_types import ClusterReport

_SHOWN = 20
"""The summary lists up to this many jobs one by one; of more, only the costliest."""
_FINDINGS = 5
_INDENT = 2
_COLUMNS = (
    Column("name", essential=True, shortens=True),
    Column("status", essential=True),
    Column("wall", "seconds"),
    Column("memory_peak", "bytes"),
    Column("cpu", "seconds"),
    Column("cpu_mean", "percent"),
    Column("of_memory", "percent"),
    Column("of_cpus", "percent"),
    Column("of_runtime", "percent"),
)
"""The last three are what a job used, as a share of what it requested."""
_TAIL = 4096


class RunMessages(WorkflowListener):
    """Reports each failure at once, with its reason, and the summary at the end."""

    def __init__(self, prepared: Prepared, *, quiet: bool) -> None:
        assert prepared.directory is not None, "it was not claimed"
        self.console: Console | None = None
        self._plan = prepared.plan
        self._before = prepared.before
        self._directory = prepared.directory
        self._quiet = quiet
        self._blocked = 0
        self._cancelled: set[int] = set()  # jobs that were cancelled on request, not with the whole workflow

    def ended(self, attempt: Attempt, why: str | None, again: Requirement | None) -> None:
        if attempt.status in (Status.COMPLETED, Status.CANCELLED):
            if why:
                self._say(f"{attempt.name}: {why}")
                self._cancelled.add(attempt.number)
            return
        failure = f"{attempt.name}: {why}" if why else f"{attempt.name} {in_words(attempt.outcome)}"
        if again is not None:
            self._say(f"{failure}; trying again{_more(attempt, again)}")
            return
        _, stderr = self._directory.log_paths(attempt.name, attempt.attempt)
        last = "" if why else last_line(stderr)
        self._say(f"{failure}{f': {last}' if last else ''}  [{stderr}]")

    def recovering(self, attempt: Attempt, script: str) -> None:
        self._say(f"{attempt.name} {in_words(attempt.outcome)}; {script} runs, and then it is tried again")

    def blocked(self, job: Job, by: Job) -> None:
        self._blocked += 1
        if self._blocked <= _SHOWN:
            why = "was cancelled" if by.number in self._cancelled else "failed"
            self._say(f"{job.name} is blocked: it needs {by.name}, which {why}")
        elif self._blocked == _SHOWN + 1:
            self._say("more jobs are blocked; `jobmeter workflow status` lists them")

    def finished(self, result: Result) -> None:
        self.console = None  # the display is gone
        if not self._quiet:
            numbers = {job.number for job in self._plan.jobs}  # the spec may have lost jobs of earlier attempts
            attempts = [each for each in (*self._before, *result.attempts) if each.number in numbers]
            print_summary(self._plan, self._directory, result, attempts)

    def plotted(self, report: Written) -> None:
        self._say(f"report: {report.path}")

    def sampled(self, path: str) -> None:
        self._say(f"samples: {path} (`jobmeter plot FILE` draws them)")

    def watched(self, report: ClusterReport, page: str) -> None:
        if not self._quiet:
            from jobmeter.report.cluster.text import section_lines  # late: few workflows watch their cluster

            lines = section_lines(report, stderr_width())
            print_to_stderr([f"jobmeter: {lines[0]}", *(f"  {line}" for line in lines[1:]), f"  page       {page}"])

    def _say(self, message: str) -> None:
        if not self._quiet:
            self.warn(message)

    def warn(self, message: str) -> None:
        """Print a line, above the display if there is one."""
        if self.console is not None:
            self.console.print(printable(f"jobmeter: {message}"), soft_wrap=True)
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
    """The last line of a log that is not blank, printable and at most 200 characters long; empty if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _TAIL, 0))
            lines = bytes_to_text(file.read()).split("\n")
    except OSError:
        return ""
    texts = [line.strip() for line in lines if line.strip()]
    return printable(texts[-1])[:200] if texts else ""


def print_summary(plan: Plan, directory: RunDirectory, result: Result, attempts: Sequence[Attempt]) -> None:
    """Print the summary of the whole workflow."""
    summary = summarise(plan.jobs, attempts)
    width = stderr_width()
    lines = [
        f"jobmeter: workflow {plan.name} {_outcome_text(result, len(plan.jobs), attempts)}",
        *_job_table(plan, attempts, summary, width),
        *_totals(result, summary),
        *request_lines(plan, attempts),
        *_advice(plan, directory, attempts),
        *_next(directory, result),
    ]
    print_to_stderr(lines, HANGING)


def _outcome_text(result: Result, jobs: int, attempts: Sequence[Attempt]) -> str:
    counts: Counter[str] = Counter(attempt.status for attempt in latest(list(attempts)).values())
    counts["blocked"] = len(result.blocked)
    counts["waiting"] = result.not_begun
    parts = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
    verdict = "completed" if result.succeeded else "was stopped" if result.stopped else "failed"
    return f"{verdict} after {text(result.wall_seconds, 'seconds')}: {parts} of {jobs} job{'s' * (jobs != 1)}"


def _job_table(plan: Plan, attempts: Sequence[Attempt], summary: WorkflowSummary, width: int | None) -> list[str]:
    few = len(plan.jobs) <= _SHOWN
    shown = list(latest(list(attempts)).values()) if few else summary.costliest
    if not shown:
        return []
    title = [] if few else ["  the costliest:"]
    rows = [_row(attempt) for attempt in sorted(shown, key=lambda each: each.number if few else 0)]
    table = fitted_lines(_COLUMNS, rows, width and width - _INDENT, "`jobmeter workflow results --json` has all")
    return title + [f"{' ' * _INDENT}{line}" for line in table]


def _row(attempt: Attempt) -> list[str]:
    return [
        printable(attempt.name if attempt.attempt == 1 else f"{attempt.name} (attempt {attempt.attempt})"),
        attempt.status,
        _text(attempt.wall_seconds, "seconds"),
        _text(attempt.figure("memory_peak_bytes"), "bytes"),
        _text(attempt.figure("cpu_seconds"), "seconds"),
        _text(attempt.figure("cpu_mean_percent"), "percent"),
        _share_of(attempt.figure("memory_peak_bytes"), attempt.memory_bytes),
        _share_of(attempt.figure("cpu_mean_percent"), attempt.cpus and attempt.cpus * 100),
        _share_of(attempt.wall_seconds, attempt.runtime_seconds),
    ]


def _text(value: float | None, unit: str) -> str:
    return "" if value is None else text(value, unit)


def _share_of(used: float | None, requested: float | None) -> str:
    if used is None or not requested:
        return ""
    return share_text(used / requested)


def _totals(result: Result, summary: WorkflowSummary) -> list[str]:
    totals = summary.totals
    lines = []
    if totals.core_hours is not None:
        share = _share(totals.cpu_efficiency, "{} of the CPU time they requested was used")
        lines.append(f"  CPU        {_amount(totals.core_hours, 'core')}{share}")
    if totals.gb_hours is not None:
        share = _share(totals.memory_efficiency, "at their peaks jobs used {} of what they requested")
        lines.append(f"  memory     {_amount(totals.gb_hours, 'GiB')}{share}")
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
    """Format an amount, as `1.25 core-hours`. A very small one is in seconds, so that it is not shown as 0."""
    return f"{hours:,.2f} {what}-hours" if hours >= 0.01 else f"{hours * 3600:.3g} {what}-seconds"


def _percent(share: float) -> str:
    return "under 1 %" if 0 < share < 0.01 else text(100 * share, "percent")


def request_lines(plan: Plan, attempts: Sequence[Attempt]) -> list[str]:
    """Lines about the jobs that requested too little or too much."""
    rows = _judged(attempts)
    # Of several attempts at a job, the last one is reported.
    over = list({(each.job.key, each.verdict.resource): each for each in _violations(plan, rows)}.values())
    lines = [f"  {TOO_LITTLE:<10} {_over(each)}" for each in over[:_FINDINGS]]
    if len(over) > _FINDINGS:
        lines.append(f"  {TOO_LITTLE:<10} … and {len(over) - _FINDINGS} more: jobmeter check")
    return lines + [f"  {TOO_MUCH:<10} {opportunity_text(each)}" for each in wasted_requests(rows)[:_FINDINGS]]


def _judged(attempts: Sequence[Attempt]) -> list[StoredRun]:
    return [attempt.as_row() for attempt in attempts if attempt.status != Status.CANCELLED]


def _violations(plan: Plan, rows: Sequence[StoredRun]) -> list[JobVerdict]:
    requested: dict[Key, Requirement] = {(None, None, job.number): job.requirement for job in plan.jobs}
    return check(rows, everything=False, current=requested).verdicts


def _over(judged: JobVerdict) -> str:
    attempts = f" ({judged.job.attempt} attempts)" if judged.job.attempt > 1 else ""
    return f"{judged.job.name}: {overuse_text(judged.verdict)}{attempts}"


def _advice(plan: Plan, directory: RunDirectory, attempts: Sequence[Attempt]) -> list[str]:
    """Lines with the requests that `check --fix` would write, which are those that `size` advises."""
    violations = _violations(plan, _judged(attempts))
    if not violations:
        return []
    from jobmeter.store import open_store  # late: most workflows end without any advice
    from jobmeter.workflow.corrected_requests import corrected_requests

    try:
        store = open_store(directory.store, warn)
    except StoreError:
        return []  # the run was measured, but the store cannot be read: other commands say why
    requested = {job.step: job.requirement for job in plan.jobs}
    sizes = corrected_requests(store, directory.workflow, violations, requested).sizes
    lines = [f"  advice     {step}: request {_sizes(size)}" for step, size in list(sizes.items())[:_FINDINGS]]
    return [*lines, f"  advice     jobmeter check --fix {shlex.quote(near_path(plan.path))} writes what they need"]


def _sizes(size: Requirement) -> str:
    """Format a size, as `memory 384 MiB and runtime 30 s`."""
    amounts = ((resource, getattr(size, resource.field)) for resource in RESOURCES)
    return " and ".join(f"{resource.key} {quantity(amount, resource)}" for resource, amount in amounts if amount)


def _next(directory: RunDirectory, result: Result) -> list[str]:
    name = directory.workflow
    commands = f"jobmeter check {name} · jobmeter size {name} · jobmeter workflow results {name}"
    if not result.succeeded:
        commands = f"jobmeter workflow resume {name}"
    return [f"  logs       {directory.logs}", f"  next       {commands}"]
