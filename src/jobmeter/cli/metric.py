"""`jobmeter metric`: numbers that a job reports about itself, such as the loss of a model."""

from __future__ import annotations

import math
import os
import time

from jobmeter.cli.shared.options import Parser
from jobmeter.errors import StoreError, UsageError
from jobmeter.session.metrics import VARIABLE, append_metric


def main(arguments: list[str]) -> int:
    parser = Parser(
        "metric",
        "Report a number from inside a job of a workflow, as the loss of a model. Reported again, it becomes a curve. "
        "`jobmeter study` ranks jobs by it.",
        usage="jobmeter metric NAME VALUE [NAME VALUE...]",
    )
    parser.add_argument("words", nargs="+", metavar="NAME VALUE", help="a name, and a number")
    # A value may be negative, which argparse would take for an option.
    if any(word in ("-h", "--help") for word in arguments) or not arguments:
        parser.parse_args(arguments)
    values = _values(arguments)
    path = os.environ.get(VARIABLE)
    if not path:
        raise UsageError(
            f"metric: this is no job of a workflow: {VARIABLE} is not set. "
            "For a single job: jobmeter run --metrics FILE, and write the numbers to FILE."
        )
    try:
        for name, value in values:
            append_metric(path, name, value, time.time())
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    return 0


def _values(words: list[str]) -> list[tuple[str, float]]:
    if len(words) % 2:
        raise UsageError(f"metric: {words[-1]!r} has no value. Write: jobmeter metric NAME VALUE")
    values = []
    for name, text in zip(words[::2], words[1::2]):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise UsageError(f"metric: {name}: {text!r} is not a number")
        values.append((name, value))
    return values
