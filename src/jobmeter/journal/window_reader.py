"""Reads the windows of many runs, and nothing else: a fast reader for journals exactly as `run` writes them.

A journal with anything else (torn lines, values that are not valid) is for `jobmeter.journal.reader`, which
reports it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jobmeter.journal.lines import DECODER, open_journal, parse_line, read_lines
from jobmeter.journal.reader import RunLocation, quick_id, read_shared
from jobmeter.model import Kind
from jobmeter.record.checks import check_texts
from jobmeter.record.types import LARGEST_STORED
from jobmeter.record.validate import check_header_fields, problem_of_window

_MEASUREMENTS = b',"measurements":'
_scan_json = DECODER.scan_once  # type: ignore[attr-defined]
_LONGEST_RUN = 1e11
"""Seconds, as in `record.types`."""
_NUMBERS = (int, float)
_GAUGE = Kind.GAUGE.value
_NUMERIC = (_GAUGE, Kind.COUNTER.value)


class ColumnKind(NamedTuple):
    """A column of windows."""

    key: str
    kind: str  # of its measurement; empty when the run does not describe it
    unit: str


Columns = tuple[ColumnKind, ...]
Part = tuple[Columns, list[list[Any]]]
"""Columns, and the windows that have them: seconds, samples, and one cell per column."""


class NotCanonical(Exception):
    """The journal of the run is not exactly as `run` writes it."""


class WindowReader:
    """Reads runs of one file; fastest in the order in which the file has them."""

    def __init__(self, path: str) -> None:
        """Raises StoreError if the file cannot be read."""
        self._path = path
        self._file = open_journal(path)
        self._shared: dict[str, Any] | None = None
        self._described: dict[bytes, dict[str, Any]] = {}
        self._columns: dict[tuple[bytes, bytes], Columns] = {}

    def close(self) -> None:
        self._file.close()

    def columns(self, location: RunLocation) -> list[Part]:
        """The columns of a run's windows, without the windows."""
        return self._parts(location, with_windows=False)

    def windows(self, location: RunLocation) -> list[Part]:
        """The windows of a run. Raises NotCanonical if anything in it is not as it should be."""
        return self._parts(location, with_windows=True)

    def _parts(self, location: RunLocation, *, with_windows: bool) -> list[Part]:
        self._file.seek(location.offset)
        lines = read_lines(self._file)
        header = next(lines, b"")
        if quick_id(header) != location.run_id:
            raise NotCanonical
        own = header.partition(_MEASUREMENTS)[2]
        parts: list[Part] = []
        windows: list[list[Any]] | None = None  # of the last part; None before the first columns
        is_mine = True
        for line in lines:
            if line[:1] == b"[":
                if is_mine and with_windows:
                    if windows is None:
                        raise NotCanonical
                    windows.append(_window(line, parts[-1][0]))
            elif line.startswith(b'{"columns"'):
                if is_mine:
                    windows = []
                    parts.append((self._columns_of(line, own, header), windows))
            elif line.startswith(b'{"record"'):
                if is_mine:
                    return parts
            elif line.startswith(b'{"schema"'):
                is_mine = False
            elif line.startswith(b'{"run"'):
                is_mine = _run_of(line) == location.run_id
            elif line.startswith((b'{"labels"', b'{"removed"')):
                continue
            elif is_mine and line != b"\n" and not line.startswith((b'{"processes"', b'{"gap"')):
                raise NotCanonical
        return parts

    def _columns_of(self, line: bytes, own: bytes, header: bytes) -> Columns:
        columns = self._columns.get((line, own))
        if columns is None:
            entry = parse_line(line)
            keys = entry.get("columns") if isinstance(entry, dict) else None
            if not line.endswith(b"\n") or not isinstance(keys, list) or check_texts(keys) is not None:
                raise NotCanonical
            described = self._descriptions(own, header)
            columns = self._columns[line, own] = tuple(
                ColumnKind(key, about.get("kind", ""), about.get("unit", ""))
                for key in keys
                for about in (described.get(key, {}),)
            )
        return columns

    def _descriptions(self, own: bytes, header: bytes) -> dict[str, Any]:
        """The descriptions of the run's measurements, from its header or the first line of the file."""
        described = self._described.get(own)
        if described is None:
            if self._shared is None:
                self._shared = read_shared(self._path)
            whole = parse_line(header)
            if not isinstance(whole, dict) or check_header_fields({**self._shared, **whole}) is not None:
                raise NotCanonical
            described = self._described[own] = {**self._shared, **whole}.get("measurements", {})
        return described


def _run_of(line: bytes) -> str | None:
    entry = parse_line(line)
    run = entry.get("run") if isinstance(entry, dict) else None
    if not isinstance(run, str):
        raise NotCanonical
    return run


def _window(line: bytes, columns: Columns) -> list[Any]:
    """Parse a window. Raises NotCanonical if a cell is not valid for the kind of its column."""
    try:
        window: list[Any] = _scan_json(line.decode(), 0)[0]
    except (ValueError, StopIteration, RecursionError):
        raise NotCanonical from None
    if len(window) != len(columns) + 2 or line[-1:] != b"\n" or rb"\ud" in line:
        raise NotCanonical
    try:
        if type(window[0]) not in _NUMBERS or not 0 <= window[0] <= _LONGEST_RUN:
            raise NotCanonical
        if type(window[1]) is not int or not 0 <= window[1] <= LARGEST_STORED:
            raise NotCanonical
        for cell, column in zip(window[2:], columns):
            if type(cell) in _NUMBERS and column.kind in _NUMERIC:
                is_valid = 0 <= cell <= LARGEST_STORED
            elif type(cell) is list and column.kind == _GAUGE:
                peak, mean = cell
                is_valid = 0 <= peak <= LARGEST_STORED and 0 <= mean <= LARGEST_STORED
            else:
                is_valid = problem_of_window(0, 0, {column.key: cell}, {column.key: column.kind}) is None
            if not is_valid:
                raise NotCanonical
    except (TypeError, ValueError):
        raise NotCanonical from None  # a text, or a list, where a number belongs
    return window
