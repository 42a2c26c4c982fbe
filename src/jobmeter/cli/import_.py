"""`jobmeter import`: brings runs that other tools recorded into the store."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.byte_text import to_text
from jobmeter.cli.shared.options import Parser, add_share_option, add_store_option
from jobmeter.cli.shared.output import print_json, print_lines, warn
from jobmeter.cli.shared.progress import progress
from jobmeter.cli.shared.sharing import share
from jobmeter.errors import UsageError
from jobmeter.exchange.detect import FORMATS, kinds_in_words
from jobmeter.exchange.inputs import InputFile, Inputs, Skipped, find_inputs, skipped_lines
from jobmeter.settings import resolve

if TYPE_CHECKING:
    from jobmeter.exchange.add_runs import Adding, ImportCounts
    from jobmeter.exchange.foreign import Items

_MOST_SKIPPED = 10
"""The most skipped files that are named one by one."""


class Subject(NamedTuple):
    """The subject of one line of the output: a file, or the files of one kind in a directory."""

    name: str
    kind: str


Results = dict[Subject, "ImportCounts"]


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    location = resolve("store", options.store)
    share(location, options.share_group)
    with progress() as show:
        inputs = find_inputs(options.files, options.kind, show)
        contents = _contents(inputs, show)

        from jobmeter.exchange.add_runs import Adding
        from jobmeter.store import open_store

        results = _add_all(Adding(open_store(location, warn), warn), contents)
    _report(results, inputs.skipped, as_json=options.json)
    # The exit code shows scripts that something was left out.
    return 1 if any(counts.unusable for counts in results.values()) else 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "import",
        "Store runs that other tools recorded. The kind of each file is recognised by its content. Of a directory, "
        "files of known kinds are imported, those in directories below it too, and the others are skipped. "
        "A run that is in the store already is not added twice.",
    )
    parser.epilog = f"Kinds: {kinds_in_words()}."
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file or directory to import; - is stdin")
    parser.add_argument("--from", dest="kind", metavar="KIND", choices=[*FORMATS], help="what the files are")
    add_store_option(parser)
    add_share_option(parser)
    parser.add_argument("--json", action="store_true", help="print an array of objects, one a file")
    return parser.parse_args(arguments)


def _contents(inputs: Inputs, show: Callable[[str], None]) -> Iterator[tuple[InputFile, Items]]:
    """The files with their contents. Files that were named by the user are read before anything is stored."""
    from jobmeter.exchange.add_runs import items

    named = [(file, items(file, show)) for file in inputs.files if file.found_in is None]
    searched = [file for file in inputs.files if file.found_in is not None]

    def read_each() -> Iterator[tuple[InputFile, Items]]:
        yield from named
        for number, file in enumerate(searched, start=1):
            show(f"{file.found_in}: {number:,} of {len(searched):,} files")
            try:
                yield file, items(file, show)
            except UsageError as error:
                inputs.skipped.append(Skipped(file.path, str(error).removeprefix(f"{file.path}: ")))

    return read_each()


def _add_all(adding: Adding, contents: Iterator[tuple[InputFile, Items]]) -> Results:
    from jobmeter.exchange.add_runs import ImportCounts

    results: Results = {}
    for file, runs in contents:
        adding.add(runs, results.setdefault(Subject(file.subject, file.kind), ImportCounts()))
    adding.finish()
    return results


def _report(results: Results, skipped: list[Skipped], *, as_json: bool) -> None:
    if as_json:
        objects: list[dict[str, Any]] = [
            {"file": to_text(subject.name), "kind": subject.kind, **asdict(counts)}
            for subject, counts in results.items()
        ]
        objects += [{"file": to_text(each.path), "skipped": to_text(each.why)} for each in skipped]
        print_json(objects, indent=None)
        return
    print_lines(f"{subject.name}: {_in_words(subject, counts)}" for subject, counts in results.items())
    for line in skipped_lines(skipped, _MOST_SKIPPED):
        warn(line)


def _in_words(subject: Subject, counts: ImportCounts) -> str:
    parts = [f"{counts.new} new", f"{counts.known} known"]
    if counts.unusable:
        parts.append(f"{counts.unusable} unusable")
    if counts.unfinished:
        parts.append(f"{counts.unfinished} not ended yet (import the file again when they have)")
    return f"{FORMATS[subject.kind].WORDS}: {', '.join(parts)}"
