"""Writes sizes into a workflow spec, or shows them as a diff: shared by `check --fix` and `size --apply`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.cli.shared.options import Parser
from jobmeter.errors import UsageError
from jobmeter.model import Requirement
from jobmeter.terminal import data_output, printable
from jobmeter.working_directory import near_path

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.workflow.plan import Plan

_COLOURS = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}


class Rewritten(NamedTuple):
    """The result of writing sizes into a spec."""

    path: str
    diff: str  # unified; empty when nothing changes
    changes: list[str]  # one line for each changed request of a step


def add_fix_options(parser: Parser, option: str, help: str) -> None:
    parser.add_argument(option, metavar="SPEC", dest="spec", help=help)
    parser.add_argument("--diff", action="store_true", help=f"with {option}: show what would change, and write nothing")


def plan_to_fix(options: argparse.Namespace, option: str) -> Plan | None:
    """The plan of the spec that the option names; None without one. Raises UsageError for `--diff` without a spec."""
    if options.spec is None:
        if options.diff:
            raise UsageError(f"--diff shows what {option} would change. Name the spec with {option} SPEC.")
        return None
    from jobmeter.workflow.plan import load_plan

    return load_plan(options.spec)


def check_it_is_theirs(plan: Plan, rows: Iterable[StoredRun]) -> None:
    """Raise UsageError if a run belongs to another workflow, or no run to a job of the spec."""
    from jobmeter.analyse.check import job_of
    from jobmeter.model import workflow_id

    jobs = [job_of(row) for row in rows]
    others = sorted({job.workflow for job in jobs if job.workflow} - {workflow_id(plan.name)})
    if others:
        raise UsageError(
            f"{plan.path}: is the spec of {plan.name!r}, not of {others[0]!r}. Name the spec of these jobs."
        )
    if jobs and not {job.step for job in jobs} & {job.step for job in plan.jobs}:
        raise UsageError(f"{plan.path}: has no job {jobs[0].step!r}. Name the spec of these jobs.")


def rewrite(plan: Plan, sizes: Mapping[str, Requirement], *, diff: bool) -> Rewritten:
    """Write the sizes, by step, into the spec of this plan; with `diff` only return what would change."""
    from jobmeter.workflow.spec.edit.rewrite import rewrite_requirements, write_spec
    from jobmeter.workflow.spec.plan.planning import make_plan
    from jobmeter.workflow.spec.read.loading import parse_document

    if not sizes:
        return Rewritten(plan.path, "", [])
    with open(plan.path, encoding="utf-8", newline="") as file:
        before = file.read()
    after = rewrite_requirements(plan.path, sizes)
    changes = _changes(plan, make_plan(parse_document(plan.path, after)))
    if after != before and not diff:
        write_spec(plan.path, after)
    return Rewritten(plan.path, unified_diff(near_path(plan.path), before, after), changes)


def unified_diff(path: str, before: str, after: str) -> str:
    """A unified diff, as `patch -p0` and `git apply -p0` read it; empty if nothing changes."""
    import difflib  # late: few commands change a spec

    lines = []
    for line in difflib.unified_diff(_lines(before), _lines(after), path, path):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)


def _lines(text: str) -> list[str]:
    """The lines with their ends. `splitlines` also splits at characters that are not line ends for other tools."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def print_rewritten(done: Rewritten, *, diff: bool) -> None:
    """Print the diff to stdout; without `diff`, print to stderr what was changed."""
    from jobmeter.cli.shared.output import warn

    if not done.diff:
        warn(f"{done.path}: nothing to change")
    elif diff:
        if sys.stdout.isatty():
            sys.stdout.write(_coloured(done.diff))
        else:
            data_output().write(done.diff)  # unchanged, so that `patch` can read it
    else:
        warn(f"{done.path}: rewritten")
        for change in done.changes:
            warn(f"  {change}")


def _coloured(diff: str) -> str:
    return "".join(
        f"{_COLOURS[line[0]]}{printable(line.rstrip())}\033[0m\n"
        if line[0] in _COLOURS
        else f"{printable(line.rstrip())}\n"
        for line in _lines(diff)
    )


def _changes(before: Plan, after: Plan) -> list[str]:
    """The changed requests, by step: a requirement that several steps share changes for all of them."""
    from jobmeter.analyse.resource import RESOURCES
    from jobmeter.report.size import quantity

    changes: dict[str, None] = {}
    for old, new in zip(before.jobs, after.jobs):
        for resource in RESOURCES:
            was, now = (getattr(job.requirement, resource.field) for job in (old, new))
            if was != now:
                words = "not requested" if was is None else quantity(was, resource)
                changes[f"{old.step}: {resource.key} {words} → {quantity(now, resource)}"] = None
    return list(changes)
