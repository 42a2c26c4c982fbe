"""`jobmeter data`: small values that the jobs of a workflow hand to each other."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from jobmeter.cli.shared.options import Parser, add_store_option, option_type, refuse_given
from jobmeter.cli.shared.output import print_json, print_line
from jobmeter.errors import UsageError, quote
from jobmeter.settings import positive_whole_number, resolve
from jobmeter.suggestion import suggest
from jobmeter.workflow.user_data import LARGEST, DataDirectory

_COMMANDS = ("get", "set", "ls")
_VARIABLE = "JOBMETER_DATA_DIR"  # the same as in `workflow.job_environment`, which is slow to import


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    data = _directory(options)
    if options.command == "set":
        data.set(_name(options), _value(options))
    elif options.command == "get":
        _print(data.get(_name(options)), text=options.text)
    else:
        for name in data.names():
            print_line(name if data.has(name) else f"{name} (no value yet)")
    return 0


def _directory(options: argparse.Namespace) -> DataDirectory:
    """The data of the run that this job belongs to; with --workflow or outside a job, of the named or the last run."""
    path = os.environ.get(_VARIABLE)
    if path and options.workflow is None:
        refuse_given(options, ["run-id"], "a job has the data of its own run. For others, name the --workflow.")
        return DataDirectory(path)
    from jobmeter.workflow.directory import find_run

    return find_run(resolve("store", options.store), options.workflow, options.run_id).data


def _name(options: argparse.Namespace) -> str:
    if options.name is None:
        raise UsageError(f"name the user data: jobmeter data {options.command} DATA")
    return str(options.name)


def _value(options: argparse.Namespace) -> Any:
    """The value as it is given, or from stdin."""
    text = options.value
    if text is None or text == "-":
        text = sys.stdin.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise UsageError(f"user data {quote(options.name)}: stdin has more than {LARGEST:,} bytes. Use a file.")
        text = text.removesuffix("\n") if options.text else text
    if options.text:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{text[:40]!r} is not JSON ({error}). With --text it is taken as a text.") from None


def _print(value: Any, *, text: bool) -> None:
    if text and isinstance(value, str):
        print_line(value)
    else:
        print_json(value, indent=None)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "data",
        "Read and write the user data of a workflow: small values that its jobs hand to each other, as JSON. In a "
        "job it is the data of its run.",
    )
    parser.add_argument("command", metavar="get|set|ls", help="print a value, set it, or list the names")
    parser.add_argument("name", nargs="?", metavar="DATA", help="the name that the spec has")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="for set: JSON (default: what stdin has)")
    parser.add_argument(
        "--text", action="store_true", help="the value is a text, and is neither read nor printed as JSON"
    )
    parser.add_argument(
        "--workflow", metavar="WORKFLOW", help="its id, name or spec (default: that of the job, else the last)"
    )
    number = option_type("--run-id", positive_whole_number)
    parser.add_argument("--run-id", metavar="N", type=number, help="which of its runs (default: the newest)")
    add_store_option(parser)
    options = parser.parse_args(arguments)
    if options.command not in _COMMANDS:
        raise UsageError(f"there is no command 'data {options.command}'. {suggest(options.command, _COMMANDS)}")
    if options.command != "set" and options.value is not None:
        raise UsageError(f"{options.value!r}: only `data set` takes a value")
    return options
