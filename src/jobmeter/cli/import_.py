"""`jobmeter import`: brings runs that other tools recorded into the store."""

from __future__ import annotations

import json

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.shared.progress import counted
from jobmeter.exchange.add_runs import ImportCounts, InputFile, add_runs, items, open_files
from jobmeter.exchange.detect import FORMATS
from jobmeter.settings import resolve

_EPILOG = "; ".join(f"{kind}: {form.WORDS}" for kind, form in FORMATS.items())


def main(arguments: list[str]) -> int:
    parser = Parser(
        "import",
        "Store runs that other tools recorded. The kind of each file is recognised by its content. "
        "A run that is in the store already is not added twice.",
    )
    parser.epilog = f"Kinds: {_EPILOG}."
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file to import; - is stdin")
    parser.add_argument("--from", dest="kind", metavar="KIND", choices=[*FORMATS], help="what the files are")
    parser.add_argument("--store", metavar="DIR", help="where runs are stored (default: the XDG data directory)")
    parser.add_argument("--json", action="store_true", help="print an array of objects, one a file")
    options = parser.parse_args(arguments)
    location = resolve("store", options.store)
    files = [(file, items(file)) for file in open_files(options.files, options.kind)]

    from jobmeter.store import open_store

    store = open_store(location, warn)
    results = [(file, add_runs(store, counted(contents, file.name), warn)) for file, contents in files]
    if options.json:
        print(json.dumps([{"file": file.name, "kind": file.kind, **counts._asdict()} for file, counts in results]))
    else:
        for file, counts in results:
            print(f"{file.name}: {_in_words(file, counts)}")
    # A script shall notice that something was left out.
    return 1 if any(counts.unusable for _, counts in results) else 0


def _in_words(file: InputFile, counts: ImportCounts) -> str:
    parts = [f"{counts.new} new", f"{counts.known} known"]
    if counts.unusable:
        parts.append(f"{counts.unusable} unusable")
    if counts.unfinished:
        parts.append(f"{counts.unfinished} not ended yet (import the file again when they have)")
    return f"{FORMATS[file.kind].WORDS}: {', '.join(parts)}"
