"""`jobmeter plot`: what runs used over time, as a page that anyone can open, or as pictures."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import TYPE_CHECKING

from jobmeter.cli.shared.filters import add_filter_options, add_store_option, named_runs, selection
from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.cli.shared.output import warn
from jobmeter.errors import UsageError
from jobmeter.report.plot.curves import curves_of, write_page
from jobmeter.settings import key_list, positive_whole_number, resolve

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.report.plot.series import JobCurves
    from jobmeter.store import Store

_FILTERS = ("name", "status", "label", "since", "until", "where")


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    _check_directory(options.output)
    if options.open and options.format != "html":
        raise UsageError("--open opens a page; it does not go with --format")

    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    jobs = curves_of(store, _rows(store, options), options.measurements or [])
    for job in jobs:
        if not job.panels:
            warn(f"{job.row['id']}: it has no time series; it is in the summary only")
    stem = os.path.join(options.output, options.prefix or _default_prefix(jobs))
    try:
        files = _write_page(jobs, stem, options) if options.format == "html" else _write_images(jobs, stem, options)
    except OSError as error:
        raise UsageError(f"{error.filename or stem}: {error.strerror}") from None
    print(json.dumps({"files": files}, indent=2) if options.json else "\n".join(files))
    if options.open:
        _open(files[0])
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser("plot", "Draw CPU, memory and processes of runs over time; of the last run if none is named.")
    add = parser.add_argument
    add("runs", metavar="RUN", nargs="*", help="id, the beginning of one, a name, or `last`")
    add("--job-ids", metavar="IDS", type=key_list, default=[], help="runs, separated by commas")
    add_filter_options(parser)
    limit = option_type("--limit", positive_whole_number)
    add(
        "--limit",
        metavar="N",
        type=limit,
        default=100,
        help="the newest N of those that match the filters (default 100)",
    )
    add("--measurements", metavar="KEYS", type=key_list, help="draw these instead of CPU, memory and processes")
    add("--clock", action="store_true", help="the time of day on the axis, not the time since the start")
    add("-o", "--output", metavar="DIR", default=".", help="where to write (default: here)")
    add("--prefix", metavar="NAME", help="the beginning of the files' names")
    add("--format", choices=("html", "svg", "png"), default="html", help="a page, or pictures for papers")
    add("--open", action="store_true", help="open the page in a browser")
    add("--json", action="store_true", help="print the names of the files as JSON")
    add_store_option(parser)
    return parser.parse_args(arguments)


def _check_directory(path: str) -> None:
    """Create it if it is missing; UsageError, before any work, when nothing can be written there."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"-o: {path}: cannot be made: {error.strerror}. Name a directory that you may write to."
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"-o: {path}: cannot be written to. Name a directory that you may write to.")


def _rows(store: Store, options: argparse.Namespace) -> list[StoredRun]:
    named = [*options.runs, *options.job_ids]
    filtered = any(getattr(options, name) for name in _FILTERS)
    if named and filtered:
        raise UsageError("name runs or filter them, not both")
    if filtered:
        chosen = selection(options)
        rows = list(store.runs(chosen._replace(limit=options.limit + 1)))
        if not rows:
            raise UsageError("no run matches these filters")
        if len(rows) > options.limit:
            warn(f"only the newest {options.limit} runs are drawn; --limit N draws more")
        return rows[: options.limit]
    return named_runs(store, named or ["last"])


def _default_prefix(jobs: list[JobCurves]) -> str:
    if len(jobs) > 1:
        return f"jobmeter-{len(jobs)}-runs"
    return f"jobmeter-{_file_name(jobs[0].row['name'])}-{jobs[0].row['id'][:6]}"


def _file_name(words: str) -> str:
    """A job may be called anything; a file may not."""
    return re.sub(r"[^\w.-]+", "_", words).strip("._")[:60] or "job"


def _write_page(jobs: list[JobCurves], stem: str, options: argparse.Namespace) -> list[str]:
    path = f"{stem}.html"
    write_page(path, jobs, options.clock)
    return [path]


def _write_images(jobs: list[JobCurves], stem: str, options: argparse.Namespace) -> list[str]:
    """One picture a run; of several runs also the overviews and the summary."""
    from jobmeter.report.plot.image import job_image, overview_image, summary_image, write_image
    from jobmeter.report.plot.series import CPU, MEMORY

    pictures = {}
    for job in jobs:
        if job.panels:
            pictures[f"{stem}-{job.row['id']}" if len(jobs) > 1 else stem] = job_image(job, options.clock)
    if len(jobs) > 1:
        pictures[f"{stem}-summary"] = summary_image(jobs)
        for heading in (CPU, MEMORY):
            overview = overview_image(jobs, heading, options.clock)
            if overview is not None:
                pictures[f"{stem}-{heading.title.lower()}"] = overview
    for path, picture in pictures.items():
        write_image(picture, f"{path}.{options.format}")
    return [f"{path}.{options.format}" for path in pictures]


def _open(path: str) -> None:
    import pathlib
    import webbrowser

    if not webbrowser.open(pathlib.Path(path).resolve().as_uri()):
        warn(f"no browser was found; open {path} in one")
    sys.stdout.flush()
