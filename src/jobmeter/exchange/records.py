"""Our own run records as JSON Lines: what `export --format jsonl --records` writes, and `import` restores.

One line is one run record, with two more fields: `described` has the descriptions of its measurements and, if it was
requested, `windows` has its time series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from jobmeter.byte_text import without_surrogates
from jobmeter.errors import quote
from jobmeter.exchange.cells import BadCell
from jobmeter.exchange.foreign import TOO_LONG, ForeignRun, Items, UnusableRow, numbered_lines, valid_run
from jobmeter.journal.lines import DECODER
from jobmeter.journal.reader import JournalWindow
from jobmeter.record.build import SCHEMA

if TYPE_CHECKING:
    from jobmeter.record.types import Described, Record

SOURCE = "records"
KIND = "jobmeter"
WORDS = "run records of jobmeter, JSON Lines"


def line_of(record: Record, described: Described, windows: list[JournalWindow] | None) -> dict[str, Any]:
    """The JSON object of one line."""
    more: dict[str, Any] = {"described": described}
    if windows is not None:
        more["windows"] = [[window.seconds, window.samples, window.cells] for window in windows]
    return {**record, **more}


def fits(first_line: str, beginning: str) -> bool:
    # The text is searched, not parsed: a record with many windows may be longer than the part that was read.
    return first_line.startswith("{") and (
        f'"schema": "{SCHEMA}"' in first_line or f'"schema":"{SCHEMA}"' in first_line
    )


def read(path: str, file: BinaryIO) -> Items:
    for number, line in numbered_lines(file):
        where = f"{path}: line {number}"
        if line is None:
            yield UnusableRow(where, TOO_LONG)
        elif line.strip():
            try:
                yield _run(without_surrogates(DECODER.decode(line.decode().strip())))
            except BadCell as bad:
                yield UnusableRow(where, str(bad))
            except (ValueError, RecursionError):
                torn = "" if line.endswith(b"\n") else ": it breaks off"
                yield UnusableRow(where, f"is not whole JSON{torn}")


def _run(entry: Any) -> ForeignRun:
    if not isinstance(entry, dict) or "schema" not in entry:
        raise BadCell("is no run record")
    if entry["schema"] != SCHEMA:
        raise BadCell(f"has schema {quote(entry['schema'])}, this version reads {SCHEMA}")
    described, windows = entry.pop("described", {}), entry.pop("windows", [])
    if not isinstance(windows, list):
        raise BadCell("has windows that are no array")
    record: Any = entry
    return valid_run(ForeignRun(record, described, [_window(window) for window in windows]))


def _window(entry: Any) -> JournalWindow:
    if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[2], dict):
        raise BadCell("has a window that is not [seconds, samples, cells]")
    return JournalWindow(entry[0], entry[1], entry[2])
