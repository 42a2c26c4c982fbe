"""`jobmeter size`: what to request next time, from the history of a job."""

from __future__ import annotations

import argparse
from math import isfinite
from typing import TYPE_CHECKING

from jobmeter.cli.shared.features import input_bytes
from jobmeter.cli.shared.options import Parser, add_store_option, option_type, refuse_given
from jobmeter.cli.shared.output import print_json, print_lines, warn
from jobmeter.cli.shared.spec_edits import add_fix_options, plan_to_fix, print_rewritten, rewrite
from jobmeter.errors import OptionRefused, UsageError
from jobmeter.model import Requirement
from jobmeter.moments import moment
from jobmeter.settings import one_of, resolve

if TYPE_CHECKING:
    from jobmeter.analyse.size.advice import Advice
    from jobmeter.analyse.size.policy import Policy
    from jobmeter.store import Store
    from jobmeter.store.query.history import History
    from jobmeter.workflow.plan import Plan

_SORTED = 4
"""Up to this many jobs are all shown, in the order of their workflow; more are sorted by what they can save."""
_REASONS = 20
"""The most jobs whose reasons are shown."""
_UNKNOWN = 10
"""The most jobs that are reported one by one because nothing is known about them."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    plan = plan_to_fix(options, "--apply")

    if options.evaluate:
        from jobmeter.cli.size_evaluate import evaluate_requests

        return evaluate_requests(options, policy_of(options))
    from jobmeter.store import open_store
    from jobmeter.store.query.advice import advise_histories, job_histories

    store = open_store(resolve("store", options.store), warn)
    names = options.names or ([plan.name] if plan else [])
    policy = policy_of(options)
    features = _features(options)
    histories = list(job_histories(store, names))
    if features:
        _check_known(features, histories)
    advised = advise_histories(store, histories, policy, features)
    useful = [advice for advice in advised if advice.amounts]
    if plan is not None:
        _apply(plan, advised, diff=options.diff)
    elif not useful:
        from jobmeter.report.size import unknown

        raise UsageError(*(unknown(advice) for advice in advised[:_UNKNOWN]))
    elif options.format == "table":
        _print_table(advised, everything=options.all)
        _print_notes(store, histories)
    else:
        _print(advised if options.format == "json" else useful, options.format, policy)
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "size",
        "Recommend how much memory, CPU and time to request, from the runs of a job and from its input: the requests "
        "of least cost. "
        "Without names: the job or the workflow of the newest run.",
    )
    from jobmeter.report.size_formats import FORMATS

    add = parser.add_argument
    add("names", nargs="*", metavar="NAME|WORKFLOW", help="a job by name or glob, or a workflow by id or name")
    add("--input", metavar="FILE", nargs="+", action="extend", default=[], help="files that the run will read")
    add(
        "--feature",
        metavar="NAME=NUMBER",
        action="append",
        default=[],
        help="a known property of the run: bytes=3e9, or a label of runs that is a number; may be repeated",
    )
    target = option_type("--target", _target)
    add(
        "--target",
        metavar="SHARE",
        type=target,
        default=0.98,
        help="share of the runs for which the request must be enough (default 0.98)",
    )
    add(
        "--failure-cost",
        metavar="RUNS",
        type=option_type("--failure-cost", _failure_cost),
        default=1.0,
        help="extra cost of a failed run, beside the resources that it wasted, in average runs (default 1)",
    )
    formats = ("table", *FORMATS, "json")
    form = option_type("--format", one_of(*formats))
    add("--format", metavar="FORMAT", type=form, default="table", help=f"{', '.join(formats)} (default: table)")
    add("--below-peak", action="store_true", help="allow a time limit below the longest run, if that costs less")
    add("--all", action="store_true", help="show also jobs whose requests are fine")
    add(
        "--evaluate",
        action="store_true",
        help="replay the runs of a job or of a trace file, and show what requests would have wasted",
    )
    since = option_type("--since", moment)
    add("--since", metavar="WHEN", type=since, help="with --evaluate: only runs since then, for example 30d")
    add("--plot", metavar="FILE", help="with --evaluate: draw requests, advice and needs into this page")
    add("--json", action="store_true", help="the same as --format json")
    add_fix_options(parser, "--apply", "write the sizes into this workflow spec")
    add_store_option(parser)
    options = parser.parse_args(arguments)
    options.format = "json" if options.json else options.format
    if not options.evaluate:
        refuse_given(options, ["since", "plot"], "has no effect without --evaluate")
    else:
        refuse_given(options, ["input", "feature", "all", "diff"], "has no effect with --evaluate")
        if options.spec is not None:
            raise OptionRefused("--apply: has no effect with --evaluate")
    return options


def policy_of(options: argparse.Namespace) -> Policy:
    from jobmeter.analyse.size.policy import Policy

    return Policy(options.target, options.failure_cost, options.below_peak)


def _features(options: argparse.Namespace) -> dict[str, float]:
    """The features of the next run, from the options. Raises UsageError for a value that is no number, or no file."""
    from jobmeter.analyse.size.observation import BYTES

    features = {}
    for word in options.feature:
        name, separator, value = word.partition("=")
        try:
            features[name] = float(value)
        except ValueError:
            features[name] = float("nan")
        if not name or not separator or not isfinite(features[name]):
            raise UsageError(f"--feature: {word!r} is not NAME=NUMBER, for example bytes=3e9")
        if features[name] < 0 and name in (BYTES, "read_bytes"):
            raise UsageError(f"--feature: {word!r} is below 0")
    if options.input:
        features[BYTES] = input_bytes(options.input)
    return features


def _check_known(features: dict[str, float], histories: list[History]) -> None:
    """Warn of the features that no run has: they have no effect."""
    from jobmeter.analyse.size.observation import BYTES, READ_BYTES, features_of

    names = {name for history in histories for row in history.rows for name in features_of(row)}
    if READ_BYTES in names:
        names.add(BYTES)
    for name in features:
        if name not in names:
            advice = f" Known: {', '.join(sorted(names))}." if names else " Label runs with it: --label NAME=NUMBER."
            warn(f"no run has the feature {name!r}, so it does not count.{advice}")


def _target(words: str) -> float:
    try:
        share = float(words.removesuffix("%")) / (100 if words.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UsageError(f"{words!r} is not a share between 0 and 1, for example 0.98")
    return share


def _failure_cost(words: str) -> float:
    try:
        cost = float(words)
    except ValueError:
        cost = -1.0
    if not 0 <= cost < float("inf"):
        raise UsageError(f"{words!r} is not a number of runs, 0 or more")
    return cost


def _print(advised: list[Advice], form: str, policy: Policy) -> None:
    if form == "json":
        from jobmeter.report.size import advice_object

        print_json({"target": policy.target, "jobs": [advice_object(advice) for advice in advised]})
    else:
        from jobmeter.report.size_formats import render_sizes

        print_lines(render_sizes(form, advised).split("\n"))


def _print_table(advised: list[Advice], *, everything: bool) -> None:
    """Print the advice. Many jobs are sorted by what they can save, fine ones are left out, and a sum follows."""
    from jobmeter.cli.shared.sentences import print_sentences
    from jobmeter.cli.shared.tables import print_table
    from jobmeter.report.size import COLUMNS, cells, is_fine, savings, sentences

    shown = advised
    if len(advised) > _SORTED:
        shown = [advice for advice in advised if everything or not is_fine(advice)]
        shown.sort(key=lambda advice: (-advice.saved_gb_hours(), -advice.saved_core_hours(), advice.name))
    print_table(COLUMNS, [line for advice in shown for line in cells(advice)], elsewhere="--format json has all")
    if len(advised) > _SORTED:
        print_sentences(["", savings(advised, hidden=len(advised) - len(shown))])
    for advice in shown[:_REASONS]:
        summary, *reasons = sentences(advice)
        print_sentences(["", summary])
        print_sentences(reasons, indent=9)


def _print_notes(store: Store, histories: list[History]) -> None:
    from jobmeter.analyse.pooling import notes_on_commands, sources_of
    from jobmeter.store.query.commands import newest_runs

    for history in histories:
        sources = sources_of(history.rows)
        if len(sources) > 1:
            warn(f"{history.name}: sized by figures of different tools: {', '.join(sources)}")
    # A history of a sweep has the name of its step, which no run has: there is no note on it.
    for note in notes_on_commands(newest_runs(store, (history.name for history in histories))):
        warn(note)


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
    """The advised sizes; of a job that never completed, only those above what it requests already."""
    size = advice.requirement()
    if advice.completed:
        return size
    already_requested = [name for name, value in size.requested().items() if value <= (getattr(requested, name) or 0)]
    return size._replace(**dict.fromkeys(already_requested))
