"""`jobmeter schema`: the JSON Schema of what jobmeter writes."""

from __future__ import annotations

import sys

from jobmeter.cli.shared.options import Parser
from jobmeter.errors import UsageError
from jobmeter.record.schema_files import NAMES, read_schema


def main(arguments: list[str]) -> int:
    parser = Parser("schema", "Print the JSON Schema (draft 2020-12) of what jobmeter writes.")
    schemas = "; ".join(f"{name}: {words}" for name, words in NAMES.items())
    parser.add_argument("name", nargs="?", default="run", metavar="SCHEMA", help=f"{schemas} (default: run)")
    options = parser.parse_args(arguments)
    if options.name not in NAMES:
        raise UsageError(f"schema: there is no schema {options.name!r}. There is: {', '.join(NAMES)}")
    sys.stdout.write(read_schema(options.name))
    return 0
