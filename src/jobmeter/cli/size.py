"""`jobmeter size`: what to request next time, from the history of a job."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobmeter.cli.shared.filters import add_store_option
from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.cli.shared.output import warn
from jobmeter.cli.shared.spec_edits import add_fix_options, plan_to_fix, print_rewritten, rewrite
from jobmeter.errors import UsageError
from jobmeter.model import Requirement
from jobmeter.settings import one_of, resolve

if TYPE_CHECKING:
    from jobmeter.analyse.size import Advice, Policy
    from jobmeter.store import Store
    from jobmeter.store.query.history import History
    from jobmeter.workflow.plan import Plan

_UNKNOWN = 10
"""The most jobs that are reported one by one because nothing is known about them."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    plan = plan_to_fix(options, "--apply")

    from jobmeter.analyse.size import Policy
    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    names = options.names or ([plan.name] if plan else [])
    policy = Policy(options.target, options.below_peak)
    advised = [_advise(store, history, policy) for history in _histories(store, names)]
    useful = [advice for advice in advised if advice.amounts]
    if plan is not None:
        _apply(plan, advised, diff=options.diff)
    elif not useful:
        from jobmeter.report.size import unknown

        raise UsageError("\n".join(unknown(advice) for advice in advised[:_UNKNOWN]))
    elif options.format == "table":
        _print_table(advised)
    else:
        _print(advised if options.format == "json" else useful, options.format, policy)
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "size",
        "Recommend how much memory, CPU and time to request, from all runs of a job, recent ones counting more. "
        "Without names: the job or the workflow of the newest run.",
    )
    from jobmeter.report.size_formats import FORMATS

    add = parser.add_argument
    add("names", nargs="*", metavar="NAME|WORKFLOW", help="a job by name or glob, or a workflow by id or name")
    target = option_type("--target", _target)
    add(
        "--target",
        metavar="SHARE",
        type=target,
        default=0.99,
        help="share of the runs that must not fail (default 0.99)",
    )
    formats = ("table", *FORMATS, "json")
    form = option_type("--format", one_of(*formats))
    add("--format", metavar="FORMAT", type=form, default="table", help=f"{', '.join(formats)} (default: table)")
    add("--below-peak", action="store_true", help="allow less than the largest run needed, if that was rare")
    add_fix_options(parser, "--apply", "write the sizes into this workflow spec")
    add_store_option(parser)
    return parser.parse_args(arguments)


def _target(words: str) -> float:
    try:
        share = float(words.removesuffix("%")) / (100 if words.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UsageError(f"{words!r} is not a share between 0 and 1, for example 0.99")
    return share


def _histories(store: Store, names: list[str]) -> Iterator[History]:
    """Of the jobs and workflows named. UsageError for a name that none has."""
    from jobmeter.store import Selection
    from jobmeter.store.query.history import name_histories, workflow_histories

    if not names:
        newest = next(store.runs(Selection(limit=1)), None)
        if newest is None:
            store.resolve("last")  # says that there are none
        else:
            workflow = newest.get("workflow")
            yield from workflow_histories(store, workflow) if workflow else name_histories(store, newest["name"])
    for name in names:
        workflow = store.find_workflow(name)
        histories = list(workflow_histories(store, workflow) if workflow else name_histories(store, name))
        if not histories:
            from jobmeter.store.query.run_names import did_you_mean

            hint = did_you_mean(store.query, name) or "`jobmeter stats` lists the jobs that have."
            raise UsageError(f"no job and no workflow named {name!r} has run. {hint}")
        yield from histories


def _advise(store: Store, history: History, policy: Policy) -> Advice:
    from jobmeter.analyse.size import advise

    cpus = store.record(history.rows[0]["id"]).get("host", {}).get("cpus")
    return advise(history.name, history.rows, policy, older_peak=history.older_peak, machine_cpus=cpus)


def _print(advised: list[Advice], form: str, policy: Policy) -> None:
    if form == "json":
        from jobmeter.report.size import advice_object

        print(json.dumps({"target": policy.target, "jobs": [advice_object(advice) for advice in advised]}, indent=2))
    else:
        from jobmeter.report.size_formats import render_sizes

        print(render_sizes(form, advised))


def _print_table(advised: list[Advice]) -> None:
    from jobmeter.cli.shared.tables import print_table
    from jobmeter.report.size import HEADINGS, MAY_BE_CUT, UNITS, cells, sentences

    print_table(HEADINGS, UNITS, [line for advice in advised for line in cells(advice)], may_be_cut=MAY_BE_CUT)
    for advice in advised:
        print("\n" + "\n".join(sentences(advice)))


def _apply(plan: Plan, advised: list[Advice], *, diff: bool) -> None:
    from jobmeter.report.size import unknown

    steps = {job.step for job in plan.jobs}
    mine = [advice for advice in advised if advice.name in steps]
    if not mine:
        raise UsageError(f"{plan.path}: has no job {advised[0].name!r}. Name the spec of these jobs.")
    requested = {job.step: job.requirement for job in plan.jobs}
    sizes = {advice.name: _to_write(advice, requested[advice.name]) for advice in mine if advice.amounts}
    for advice in mine:
        if not advice.completed:
            warn(unknown(advice) + ("" if advice.amounts else "; its request is not changed"))
    print_rewritten(rewrite(plan, sizes, diff=diff), diff=diff)


def _to_write(advice: Advice, requested: Requirement) -> Requirement:
    """All that is advised; of a job that never completed only more than it requests already."""
    size = advice.requirement()
    if advice.completed:
        return size
    already_requested = [name for name, value in size.requested().items() if value <= (getattr(requested, name) or 0)]
    return size._replace(**dict.fromkeys(already_requested))
