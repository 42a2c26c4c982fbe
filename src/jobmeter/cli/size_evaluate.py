"""`jobmeter size --evaluate`: what requests would have wasted on the runs of a store, or of a trace file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.output import print_json, warn
from jobmeter.errors import UsageError
from jobmeter.settings import resolve
from jobmeter.times import utc

if TYPE_CHECKING:
    from jobmeter.analyse.size.evaluation import Evaluation
    from jobmeter.analyse.size.policy import Policy
    from jobmeter.analyse.stored_run import StoredRun

_FORMATS = ("table", "json")


def evaluate_requests(options: argparse.Namespace, policy: Policy) -> int:
    from jobmeter.analyse.size.evaluation import evaluate

    if options.format not in _FORMATS:
        raise UsageError(f"--format: --evaluate prints {' or '.join(_FORMATS)}, not {options.format}")
    evaluation = evaluate(_rows(options), policy)
    if not evaluation.runs:
        raise UsageError("no run of these has completed, so there is nothing to replay. `jobmeter import` adds traces.")
    if options.plot:
        _write_plot(options.plot, evaluation)
    if options.format == "json":
        print_json(_object(evaluation))
    else:
        _print_table(evaluation)
    return 0


def _rows(options: argparse.Namespace) -> list[StoredRun]:
    """The runs to replay, oldest first. Runs of trace files are read, and not stored."""
    files = [name for name in options.names if os.path.isfile(name)]
    rows = [row for path in files for row in _rows_of_file(path)]
    names = [name for name in options.names if name not in files]
    if names or not files:
        rows += _stored_rows(options, names)
    if options.since is not None:
        since = utc(options.since)
        rows = [row for row in rows if str(row.get("started", "")) >= since]
    return sorted(rows, key=lambda row: str(row.get("started", "")))


def _rows_of_file(path: str) -> Iterator[StoredRun]:
    from jobmeter.analyse.stored_run import of_record
    from jobmeter.exchange.add_runs import items
    from jobmeter.exchange.foreign import ForeignRun
    from jobmeter.exchange.inputs import find_inputs

    unusable = 0
    for file in find_inputs([path], None).files:
        for item in items(file, lambda _: None):
            if isinstance(item, ForeignRun):
                record = item.record
                yield {**of_record(record), "started": record.get("started", ""), "labels": record.get("labels", {})}
            else:
                unusable += 1
    if unusable:
        warn(f"{path}: {unusable:,} rows are not complete, and left out")


def _stored_rows(options: argparse.Namespace, names: list[str]) -> list[StoredRun]:
    from jobmeter.store import open_store
    from jobmeter.store.query.advice import job_histories

    store = open_store(resolve("store", options.store), warn)
    return [row for history in job_histories(store, names) for row in history.rows]


def _object(evaluation: Evaluation) -> dict[str, Any]:
    methods = {
        result.method: {
            name: value for name, value in result._asdict().items() if name != "method" and value is not None
        }
        for result in evaluation.results
    }
    return {"runs": evaluation.runs, "jobs": evaluation.jobs, "methods": methods}


def _print_table(evaluation: Evaluation) -> None:
    from jobmeter.cli.shared.sentences import print_sentences
    from jobmeter.cli.shared.tables import print_table
    from jobmeter.report.size_evaluation import COLUMNS, cells, summary

    print_table(COLUMNS, [cells(result, evaluation.runs) for result in evaluation.results], elsewhere="--json has all")
    print_sentences(["", summary(evaluation)])


def _write_plot(path: str, evaluation: Evaluation) -> None:
    from jobmeter.report.size_evaluation import evaluation_page

    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(evaluation_page(evaluation))
    except OSError as error:
        raise UsageError(f"--plot: {path}: {error.strerror}") from None
