"""`jobmeter import`: brings runs that other tools recorded into the store."""

from __future__ import annotations

import json

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.shared.progress import counted
from jobmeter.exchange.add_runs import Source, Tally, bring_in, items, open_sources
from jobmeter.exchange.detect import READERS
from jobmeter.settings import resolve

_EPILOG = "; ".join(f"{kind}: {reader.words}" for kind, reader in READERS.items())


def main(arguments: list[str]) -> int:
    parser = Parser(
        "import",
        "Keep runs that other tools recorded. The kind of each file is seen by its content. "
        "A run that is known already is not kept twice.",
    )
    parser.epilog = f"Kinds: {_EPILOG}."
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file to import; - is stdin")
    parser.add_argument("--from", dest="kind", metavar="KIND", choices=[*READERS], help="what the files are")
    parser.add_argument("--store", metavar="DIR", help="where runs are kept (default: the XDG data directory)")
    parser.add_argument("--json", action="store_true", help="print an array of objects, one a file")
    options = parser.parse_args(arguments)
    location = resolve("store", options.store)
    sources = [(source, items(source)) for source in open_sources(options.files, options.kind)]

    from jobmeter.store import open_store

    store = open_store(location, warn)
    tallies = [(source, bring_in(store, counted(found, source.name), warn)) for source, found in sources]
    if options.json:
        print(json.dumps([{"file": source.name, "kind": source.kind, **tally._asdict()} for source, tally in tallies]))
    else:
        for source, tally in tallies:
            print(f"{source.name}: {_in_words(source, tally)}")
    # A script shall notice that something was left out.
    return 1 if any(tally.unusable for _, tally in tallies) else 0


def _in_words(source: Source, tally: Tally) -> str:
    parts = [f"{tally.new} new", f"{tally.known} known"]
    if tally.unusable:
        parts.append(f"{tally.unusable} unusable")
    if tally.unfinished:
        parts.append(f"{tally.unfinished} not ended yet (import the file again when they have)")
    return f"{READERS[source.kind].words}: {', '.join(parts)}"
