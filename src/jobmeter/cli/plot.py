"""`jobmeter plot`: what runs used over time, as a page or as pictures; the report of a workflow."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.byte_text import to_text
from jobmeter.cli.shared.filters import FILTERS, add_filter_options, selection
from jobmeter.cli.shared.options import Parser, add_store_option, option_type
from jobmeter.cli.shared.output import print_json, print_lines, warn
from jobmeter.errors import UsageError
from jobmeter.report.plot.curves import curves_of, write_page
from jobmeter.settings import key_list, positive_whole_number, resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.report.plot.series import JobCurves
    from jobmeter.store import Selection, Store

_FORMATS = ("html", "svg", "png", "pdf")


class _Output(NamedTuple):
    """Where to write, and in which format. The names of the files begin with `stem`."""

    directory: str
    stem: str | None  # None: named after what is drawn
    format: str

    def path(self, stem: str) -> str:
        """The path of a file without its extension."""
        return os.path.join(self.directory, self.stem or stem)


class _Subject(NamedTuple):
    """What to draw: runs, or a whole run of a workflow."""

    rows: list[StoredRun]
    workflow: tuple[str, int] | None = None  # its id, and which run of it


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    output = _output(options)
    if options.open and output.format != "html":
        raise UsageError("--open opens a page; it does not go with --format")

    try:
        files = _write(output, options)
    except OSError as error:
        path = os.path.join(output.directory, os.path.basename(error.filename or ""))
        raise UsageError(f"{path}: {error.strerror}") from None
    if options.json:
        print_json({"files": list(map(to_text, files))})
    else:
        print_lines(files)
    if options.open:
        _open(files[0])
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "plot",
        "Draw CPU, memory and processes of runs over time; of the last run if none is named. Of a workflow, write the "
        "report: timeline, graph, and what each job requested and used.",
    )
    add = parser.add_argument
    add(
        "runs",
        metavar="RUN|WORKFLOW",
        nargs="*",
        help="a run by id, prefix, name or `last`; a group, as name=GLOB or label.KEY=VALUE; a workflow by id or name; "
        "or a database that `export` wrote",
    )
    add(
        "--job-ids",
        metavar="IDS",
        type=key_list,
        default=[],
        help="jobs by the numbers that `check` and `workflow results` print, or runs, separated by commas",
    )
    number = option_type("--run-id", positive_whole_number)
    add("--run-id", metavar="N", type=number, help="which run of the workflow: 1, 2, 3 … (default: the newest)")
    add_filter_options(parser)
    limit = option_type("--limit", positive_whole_number)
    add(
        "--limit",
        metavar="N",
        type=limit,
        default=100,
        help="the newest N of those that match the filters, or of a group (default 100)",
    )
    add(
        "--measurements",
        metavar="KEYS",
        type=key_list,
        help="draw these instead of CPU, memory and processes: keys and globs, separated by commas",
    )
    add("--clock", action="store_true", help="the time of day on the axis, not the time since the start")
    add("-o", "--output", metavar="PATH", default=".", help="a file, as page.html, or a directory (default: here)")
    add("--prefix", metavar="NAME", help="the beginning of the files' names")
    add("--format", choices=_FORMATS, help="a page (the default), or pictures for papers")
    add("--open", action="store_true", help="open the page in a browser")
    add("--json", action="store_true", help="print the names of the files as JSON")
    add_store_option(parser)
    return parser.parse_args(arguments)


def _output(options: argparse.Namespace) -> _Output:
    """Where to write, from the options. Raises UsageError, before any work, if the directory cannot be written to."""
    path, form = options.output, options.format
    stem, dot, extension = os.path.basename(path).rpartition(".")
    if dot and stem and extension.lower() in _FORMATS and not os.path.isdir(path):
        if form is not None and form != extension.lower():
            raise UsageError(f"-o: {path}: not a name for --format {form}. Name it {stem}.{form}.")
        if options.prefix is not None:
            raise UsageError("--prefix: names files in a directory, and -o names a file. Leave one out.")
        output = _Output(os.path.dirname(path) or ".", stem, extension.lower())
    else:
        output = _Output(path, options.prefix, form or "html")
    _check_directory(output.directory)
    return output


def _check_directory(path: str) -> None:
    """Create the directory if it is missing. Raises UsageError if it cannot be written to."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"-o: {path}: cannot be made: {error.strerror}. Name a directory that you may write to."
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"-o: {path}: cannot be written to. Name a directory that you may write to.")


def _subject(store: Store, options: argparse.Namespace) -> _Subject:
    filtered = any(getattr(options, name) for name in FILTERS)
    if (options.runs or options.job_ids) and filtered:
        raise UsageError("name runs or filter them, not both")
    if filtered:
        if options.run_id is not None:
            raise UsageError("--run-id selects a run of a workflow. Name the workflow.")
        return _Subject(_newest(store, selection(options), options.limit, "no run matches these filters"))
    from jobmeter.store.query.groups import named_runs
    from jobmeter.store.query.plot_subject import plot_subject

    if (rows := _grouped(store, options)) is not None:
        return _Subject(rows)
    chosen = plot_subject(store, options.runs, options.job_ids, options.run_id)
    if chosen.workflow is not None and not chosen.ids:
        return _Subject([], chosen.workflow)
    return _Subject(named_runs(store, chosen.ids))


def _grouped(store: Store, options: argparse.Namespace) -> list[StoredRun] | None:
    """The runs of the groups that are named; None if the names are of runs and workflows instead."""
    from jobmeter.store.query.groups import group_of

    groups = [(words, group_of(words)) for words in options.runs if "=" in words]
    if not any(group for _, group in groups):
        return None
    if len(groups) < len(options.runs) or options.job_ids or options.run_id is not None:
        raise UsageError("name groups, as name=GLOB, or runs and workflows, not both")
    rows: dict[str, StoredRun] = {}
    for words, group in groups:
        if group is None:
            raise UsageError(f"{words!r} is no group. Write name=GLOB, source=TOOL or label.KEY=VALUE.")
        rows.update((row["id"], row) for row in _newest(store, group, options.limit, f"{words!r}: no run"))
    return list(rows.values())


def _newest(store: Store, chosen: Selection, limit: int, nothing: str) -> list[StoredRun]:
    """The newest `limit` of the chosen runs. Raises UsageError with the text `nothing` if there are none."""
    rows = list(store.runs(chosen._replace(limit=limit + 1)))
    if not rows:
        raise UsageError(nothing)
    if len(rows) > limit:
        warn(f"only the newest {limit} runs are drawn; --limit N draws more")
    return rows[:limit]


def _write(output: _Output, options: argparse.Namespace) -> list[str]:
    """Write what was chosen, and return the names of the files."""
    from jobmeter.report.plot.database import curves_of_database, is_database

    if len(options.runs) == 1 and is_database(options.runs[0]):
        if any(getattr(options, name) for name in (*FILTERS, "measurements", "run_id")):
            raise UsageError(f"{options.runs[0]}: of a database, jobs are chosen with --job-ids, not with filters")
        return _write_jobs(_named_if_empty(curves_of_database(options.runs[0], options.job_ids)), output, options.clock)

    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    subject = _subject(store, options)
    rows = subject.rows
    if subject.workflow is not None:
        is_report = output.format == "html" and not options.measurements and not options.clock
        path = _write_report(store, subject.workflow, output) if is_report else None
        if path is not None:
            return [path]
        rows = _workflow_rows(store, subject.workflow)
    return _write_jobs(_curves(store, rows, options.measurements or []), output, options.clock)


def _write_jobs(jobs: list[JobCurves], output: _Output, of_day: bool) -> list[str]:
    """Write a page of these runs, or pictures, and return the names of the files."""
    stem = output.path(_default_stem(jobs))
    if output.format == "html":
        write_page(f"{stem}.html", jobs, of_day)
        return [f"{stem}.html"]
    return _write_images(jobs, stem, output.format, of_day)


def _write_report(store: Store, workflow: tuple[str, int], output: _Output) -> str | None:
    """Write the report of a workflow run and return its path; None if its plan is gone and only job runs are left."""
    from jobmeter.errors import StoreError
    from jobmeter.workflow.directory import RunDirectory
    from jobmeter.workflow.report import write_report

    name, run = workflow
    path = f"{output.path(f'jobmeter-{_file_name(name)}-{run}')}.html"
    try:
        write_report(path, store, RunDirectory(store.location, name, run))
    except StoreError as error:
        warn(f"{error}; the runs of its jobs are drawn, without the report")
        return None
    return path


def _workflow_rows(store: Store, workflow: tuple[str, int]) -> list[StoredRun]:
    from jobmeter.store import Selection

    return list(store.runs(Selection(workflow=workflow[0], workflow_run=workflow[1], descending=False)))


def _curves(store: Store, rows: list[StoredRun], patterns: Sequence[str]) -> list[JobCurves]:
    """The curves of these runs. Warns of what cannot be drawn."""
    from jobmeter.report.plot.series import choose_keys, undrawn

    keys: list[str] = []
    if patterns:
        keys, notes = choose_keys(patterns, [store.journal(row["id"]) for row in rows])
        for note in notes:
            warn(note)
    jobs = curves_of(store, rows, keys)
    empty = [job.row["id"] for job in jobs if not job.panels]
    if keys and len(empty) == len(jobs):
        raise UsageError(f"nothing to plot: no values over time of {', '.join(keys)} are stored")
    for line in undrawn(keys, jobs):
        warn(line)
    return jobs if keys else _named_if_empty(jobs)


def _named_if_empty(jobs: list[JobCurves]) -> list[JobCurves]:
    """Return the same jobs, after a warning that names those without curves."""
    empty = [job.row["id"] for job in jobs if not job.panels]
    if empty:
        more = f" and {len(empty) - 5} more" if len(empty) > 5 else ""
        warn(f"no time series is stored for {', '.join(empty[:5])}{more}: in the summary only")
    return jobs


def _default_stem(jobs: list[JobCurves]) -> str:
    if len(jobs) > 1:
        return f"jobmeter-{len(jobs)}-runs"
    return f"jobmeter-{_file_name(jobs[0].row['name'])}-{jobs[0].row['id'][:6]}"


def _file_name(words: str) -> str:
    """The name of a job as part of a file name: characters that do not fit there become `_`."""
    return re.sub(r"[^\w.-]+", "_", words).strip("._")[:60] or "job"


def _write_images(jobs: list[JobCurves], stem: str, form: str, of_day: bool) -> list[str]:
    """Write a picture for each run; of several runs also overviews and a summary. A PDF has all of them in one file."""
    from jobmeter.report.plot.image import pictures, write_image, write_pdf

    drawn = pictures(jobs, of_day)
    if form == "pdf":
        write_pdf(drawn.values(), f"{stem}.pdf")
        return [f"{stem}.pdf"]
    paths = {name: f"{stem}-{name}.{form}" if name else f"{stem}.{form}" for name in drawn}
    for name, figure in drawn.items():
        write_image(figure, paths[name])
    return list(paths.values())


def _open(path: str) -> None:
    import pathlib
    import webbrowser

    if not webbrowser.open(pathlib.Path(path).resolve().as_uri()):
        warn(f"no browser was found; open {path} in one")
    sys.stdout.flush()
