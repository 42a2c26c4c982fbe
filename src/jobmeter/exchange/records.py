"""Our own run records as JSON Lines: what `export --format jsonl --records` writes, and `import` restores.

One line is one run record. Beside what a record has, `described` holds the descriptions of its measurements and,
where they were requested, `windows` its time series.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, BinaryIO

from jobmeter.exchange.cells import MOST_SECONDS, BadCell, checked, moment
from jobmeter.exchange.foreign import ForeignRun, Items, UnusableRow
from jobmeter.journal.reader import JournalWindow
from jobmeter.model import Status
from jobmeter.record.build import SCHEMA

if TYPE_CHECKING:
    from jobmeter.record.types import Described, Record

SOURCE = "records"
KIND = "jobmeter"
WORDS = "run records of jobmeter, JSON Lines"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""An id becomes the name of a file."""
_PARTS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "outcome": dict,
    "usage": dict,
    "measurements": dict,
    "labels": dict,
    "requirement": dict,
    "provenance": dict,
}


def line_of(record: Record, described: Described, windows: list[JournalWindow] | None) -> dict[str, Any]:
    """The object that is one line."""
    more: dict[str, Any] = {"described": described}
    if windows is not None:
        more["windows"] = [[window.seconds, window.samples, window.cells] for window in windows]
    return {**record, **more}


def fits(first_line: str, beginning: str) -> bool:
    # By text: a record with many windows may be longer than what is looked at.
    return first_line.startswith("{") and (
        f'"schema": "{SCHEMA}"' in first_line or f'"schema":"{SCHEMA}"' in first_line
    )


def read(path: str, file: BinaryIO) -> Items:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        try:
            yield _run(json.loads(line, parse_constant=_no_number))
        except BadCell as bad:
            yield UnusableRow(where, str(bad))
        except (ValueError, RecursionError):
            torn = "" if line.endswith(b"\n") else ": it breaks off"
            yield UnusableRow(where, f"is not whole JSON{torn}")


def _run(entry: Any) -> ForeignRun:
    if not isinstance(entry, dict) or "schema" not in entry:
        raise BadCell("is no run record")
    if entry["schema"] != SCHEMA:
        raise BadCell(f"has schema {entry['schema']!r}, this version reads {SCHEMA}")
    described, windows = entry.pop("described", {}), entry.pop("windows", [])
    if not isinstance(entry.get("id"), str) or not _ID.fullmatch(entry["id"]):
        raise BadCell(f"has no id that could be one: {entry.get('id')!r}")
    for name, wanted in _PARTS.items():
        if not isinstance(entry.get(name), wanted):
            raise BadCell(f"run {entry['id']}: {name} is missing or of the wrong kind")
    if entry["outcome"].get("status") not in tuple(Status):
        raise BadCell(f"run {entry['id']}: its status {entry['outcome'].get('status')!r} is not one")
    if not isinstance(entry.get("enforced", []), list):
        raise BadCell(f"run {entry['id']}: enforced is of the wrong kind")
    for name in ("started", "ended"):
        if name in entry:
            moment(str(entry[name]), name)
    if "wall_seconds" in entry:
        checked(entry["wall_seconds"], f"run {entry['id']}: wall_seconds", MOST_SECONDS)
    for name, figure in entry["usage"].items():
        checked(figure.get("value") if isinstance(figure, dict) else None, f"run {entry['id']}: {name}")
    if not isinstance(described, dict):
        raise BadCell(f"run {entry['id']}: described is of the wrong kind")
    record: Any = entry
    return ForeignRun(record, described, [_window(window) for window in windows])


def _no_number(text: str) -> None:
    raise BadCell(f"has {text}, which is no number")


def _window(entry: Any) -> JournalWindow:
    if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[2], dict):
        raise BadCell("has a window that is not [seconds, samples, cells]")
    return JournalWindow(entry[0], entry[1], entry[2])
