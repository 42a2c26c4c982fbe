"""`jobmeter study`: what the trials of a sweep cost, and which are best."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.cli.shared.options import Parser, add_store_option, option_type
from jobmeter.cli.shared.output import print_json, warn
from jobmeter.errors import UsageError
from jobmeter.settings import positive_whole_number, resolve
from jobmeter.suggestion import suggest

if TYPE_CHECKING:
    from jobmeter.analyse.study import Study, Trial
    from jobmeter.store import Store
    from jobmeter.store.query.selection import Selection

_COMMANDS = ("summary",)


class _Chosen(NamedTuple):
    """A study: its name, and the selection of its runs."""

    name: str
    selection: Selection


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    from jobmeter.analyse.study import study_of
    from jobmeter.store import open_store
    from jobmeter.store.query.trials import trials_of

    directory = resolve("store", options.store)
    store = open_store(directory, warn)
    chosen = _choose(directory, options)
    metric = _metric(store, chosen, options.metric)
    trials = trials_of(store, chosen.selection, metric)
    if not trials:
        raise UsageError(f"{chosen.name}: no run of it has ended")
    study = study_of(trials, maximize=options.maximize, costliest=options.top)
    if options.plot is not None:
        _draw(options, chosen.name, study, metric)
    if options.json:
        from jobmeter.report.study.text import study_object

        print_json(study_object(study, trials, metric, maximize=options.maximize))
    else:
        _print(chosen.name, study, trials, metric, options)
    return 0


def _choose(directory: str, options: argparse.Namespace) -> _Chosen:
    from jobmeter.store.query.selection import Selection

    conditions = [word for word in options.study if "=" in word and not _is_spec(word)]
    if conditions:
        if len(conditions) < len(options.study) or options.run_id is not None:
            raise UsageError(f"{' '.join(options.study)}: name a workflow, or labels as label.KEY=VALUE, not both")
        return _Chosen(" ".join(conditions), Selection(labels=dict(map(_label, conditions))))
    if len(options.study) > 1:
        raise UsageError(f"{options.study[1]!r}: name one workflow")
    from jobmeter.workflow.directory import find_run

    run = find_run(directory, options.study[0] if options.study else None, options.run_id)
    selection = Selection(workflow=run.workflow, workflow_run=run.run_id)
    return _Chosen(f"{run.workflow}, run {run.run_id}", selection)


def _is_spec(word: str) -> bool:
    import os

    return os.path.exists(word)


def _label(word: str) -> tuple[str, str]:
    key, _, value = word.removeprefix("label.").partition("=")
    if key == "label":
        raise UsageError(f"{word!r}: write label.KEY=VALUE")
    return key, value


def _metric(store: Store, chosen: _Chosen, given: str | None) -> str | None:
    """The metric that trials are ranked by: the given one, else the one that most trials reported; None if none did.

    Raises UsageError if no trial reported the given one.
    """
    from jobmeter.store.query.trials import metric_names

    names = metric_names(list(store.runs(chosen.selection)))
    if given is not None:
        if given not in names:
            raise UsageError(f"--metric: no trial reported {given!r}. {suggest(given, names)}")
        return given
    if len(names) > 1:
        warn(f"ranked by {names[0]}, which most trials reported; --metric NAME chooses another: {', '.join(names[1:])}")
    return names[0] if names else None


def _draw(options: argparse.Namespace, name: str, study: Study, metric: str | None) -> None:
    if metric is None or not study.ranking:
        raise UsageError("--plot: no trial reported a metric. See `jobmeter metric --help`.")
    if not options.plot.endswith((".html", ".htm")):
        raise UsageError(f"--plot: {options.plot}: it is a page. Name a file that ends in .html")
    from jobmeter.atomic_file import replacing
    from jobmeter.report.study.page import study_page

    with replacing(options.plot) as file:
        file.write(study_page(name, study, metric, maximize=options.maximize))
    warn(f"written: {options.plot}")


def _print(name: str, study: Study, trials: list[Trial], metric: str | None, options: argparse.Namespace) -> None:
    from jobmeter.cli.shared.sentences import print_sentences
    from jobmeter.cli.shared.tables import print_table
    from jobmeter.report.study import text as report

    print_sentences([f"{name}: {len(trials):,} trial{'s' * (len(trials) != 1)}", ""])
    print_table(report.TOTAL_COLUMNS, report.total_rows(study), has_total=True)
    if metric is not None:
        print_sentences(["", f"Best by {metric} ({'more' if options.maximize else 'less'} is better):"])
        print_table(report.ranking_columns(metric), report.ranking_rows(study.ranking[: options.top]))
    print_sentences(["", "Costliest:"])
    print_table(report.COSTLIEST_COLUMNS, report.costliest_rows(study.costliest))
    if lines := report.sentences(study, metric):
        print_sentences(["", *lines])


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "study",
        "Show what the trials of a study cost together, which failed, which cost most, and by a metric that jobs "
        "reported which are best. A study is the newest run of a workflow, or all runs with a label.",
    )
    add = parser.add_argument
    add("command", metavar="summary", help="what to show")
    add(
        "study",
        nargs="*",
        metavar="WORKFLOW|label.KEY=VALUE",
        help="its id, name or spec (default: the last); or labels",
    )
    number = option_type("--run-id", positive_whole_number)
    add("--run-id", metavar="N", type=number, help="which run of the workflow (default: the newest)")
    add("--metric", metavar="NAME", help="rank by this metric (default: the one that most trials reported)")
    add("--maximize", action="store_true", help="more of it is better (default: less is)")
    top = option_type("--top", positive_whole_number)
    add("--top", metavar="N", type=top, default=10, help="how many trials to list (default 10)")
    add("--plot", metavar="FILE.html", help="also draw cost and quality of all trials as a page")
    add("--json", action="store_true", help="print an object with every trial")
    add_store_option(parser)
    options = parser.parse_intermixed_args(arguments)
    if options.command not in _COMMANDS:
        raise UsageError(f"there is no command 'study {options.command}'. {suggest(options.command, _COMMANDS)}")
    return options
