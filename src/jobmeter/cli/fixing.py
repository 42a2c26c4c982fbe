"""Sizes written into a spec, or shown as a diff first: what `check --fix` and `size --apply` share."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.cli.options import Parser
from jobmeter.errors import UsageError
from jobmeter.model import Requirement

if TYPE_CHECKING:
    from jobmeter.workflow.plan import Plan

_COLOURS = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}


class Rewritten(NamedTuple):
    """A spec with other sizes."""

    path: str
    diff: str  # unified; empty when nothing changes
    changes: list[str]  # one line a job and amount
    is_written: bool


def add_fix_options(parser: Parser, option: str, help: str) -> None:
    parser.add_argument(option, metavar="SPEC", dest="spec", help=help)
    parser.add_argument("--diff", action="store_true", help=f"with {option}: show what would change, and write nothing")


def plan_to_fix(options: argparse.Namespace, option: str) -> Plan | None:
    """The plan of the spec that is named; None without any, and UsageError if `--diff` then has nothing to show."""
    if options.spec is None:
        if options.diff:
            raise UsageError(f"--diff shows what {option} would change. Name the spec with {option} SPEC.")
        return None
    from jobmeter.workflow.plan import load_plan

    return load_plan(options.spec)


def rewrite(plan: Plan, sizes: Mapping[str, Requirement], *, diff: bool) -> Rewritten:
    """Write the sizes, by step, into the spec of this plan; with `diff` only tell what would change."""
    from jobmeter.workflow.spec.loading import parse_document
    from jobmeter.workflow.spec.planning import make_plan
    from jobmeter.workflow.spec.rewrite import rewrite_requirements, write_spec

    if not sizes:
        return Rewritten(plan.path, "", [], False)
    with open(plan.path, encoding="utf-8", newline="") as file:
        before = file.read()
    after = rewrite_requirements(plan.path, sizes)
    changes = _changes(plan, make_plan(parse_document(plan.path, after)))
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), plan.path, f"{plan.path} (new)"
    )
    if after != before and not diff:
        write_spec(plan.path, after)
    return Rewritten(plan.path, "".join(lines), changes, after != before and not diff)


def tell(done: Rewritten, *, diff: bool) -> None:
    """The diff goes to stdout, what was written is told on stderr."""
    from jobmeter.cli.output import warn

    if not done.diff:
        warn(f"{done.path}: nothing to change")
    elif diff:
        print(_coloured(done.diff) if sys.stdout.isatty() else done.diff, end="")
    else:
        warn(f"{done.path}: rewritten")
        for change in done.changes:
            warn(f"  {change}")


def _coloured(diff: str) -> str:
    return "".join(
        f"{_COLOURS[line[0]]}{line.rstrip()}\033[0m\n" if line[0] in _COLOURS else line
        for line in diff.splitlines(keepends=True)
    )


def _changes(before: Plan, after: Plan) -> list[str]:
    """What is asked for otherwise than before, by step: what several share changes for all of them."""
    from jobmeter.analyse.check import CPU, MEMORY, RUNTIME
    from jobmeter.report.sizes import quantity

    resources = {"cpus": CPU, "memory_bytes": MEMORY, "runtime_seconds": RUNTIME}
    told: dict[str, None] = {}
    for old, new in zip(before.jobs, after.jobs):
        for name, resource in resources.items():
            was, now = getattr(old.requirement, name), getattr(new.requirement, name)
            if was != now:
                words = "not asked for" if was is None else quantity(was, resource)
                told[f"{old.step}: {resource.key} {words} → {quantity(now, resource)}"] = None
    return list(told)
