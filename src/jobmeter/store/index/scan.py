"""Reads a journal file for the index: quickly, in bounded memory, from where it was left."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jobmeter.analyse.timeline import Sampler, WindowSample
from jobmeter.errors import StoreError
from jobmeter.journal.reader import check_header, final_record, parse_line, read_shared, shared_part, unreadable
from jobmeter.journal.writer import SCHEMA

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_HEADER_ID = re.compile(rb'\{"schema":"%s","id":"([\w-]+)"' % re.escape(SCHEMA.encode()))
_UNUSED = ',"measurements":{'
"""Where in a record the part begins that the index does not use: more than half of it, and the time to parse it."""
_scan_json: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
"""`json.loads` without its checks of the argument, which for a short line take as long as the line."""
_NEWLINE, _BRACKET = b"\n["
_MOST_PROBLEMS = 5
"""How many lines of one file are reported one by one."""


class ScannedRun(NamedTuple):
    """A run that ended in this file, or did not (`record` is None)."""

    run_id: str
    record: Record | None
    offset: int
    line: int
    samples: list[WindowSample]


class Amendment(NamedTuple):
    """A later change of a run: other labels, or its removal."""

    run_id: str
    labels: dict[str, str | None] | None  # None: it was removed


class _OpenRun:
    """A run whose record has not come yet."""

    __slots__ = ("before", "line", "offset", "run_id", "sampler", "samples", "width")

    def __init__(self, run_id: str, offset: int, line: int) -> None:
        self.run_id = run_id
        self.offset = offset
        self.line = line
        self.sampler: Sampler | None = None
        self.width = 0
        self.before = 0.0
        self.samples: list[WindowSample] = []


class Scan:
    """Reads one file. After `runs` is exhausted, the other attributes say how far it was read and what is open."""

    def __init__(self, path: str, offset: int, lines: int, warn: Callable[[str], None]) -> None:
        self.path = path
        self.shared: dict[str, Any] = {}
        self.amendments: list[Amendment] = []
        self.read_to = offset
        self.lines = lines
        self.size = offset  # what was there when it was read, a torn line included
        self.torn: str | None = None  # what to report of a last line without an end
        self._resumed = offset > 0
        self._warn = warn
        self._problems = 0
        self._open: dict[str, _OpenRun] = {}
        self._current: _OpenRun | None = None
        self._samplers: dict[bytes, tuple[Sampler, int]] = {}

    def runs(self) -> Iterator[ScannedRun]:
        """Every run that ends in the rest of the file, then those that do not."""
        try:
            if self.read_to:
                self.shared = read_shared(self.path)
            with open(self.path, "rb", buffering=1 << 20) as file:
                file.seek(self.read_to)
                yield from self._lines(file)
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from None
        for run in self._open.values():
            yield ScannedRun(run.run_id, None, run.offset, run.line, run.samples)
        self._report_rest()

    def resume_at(self) -> tuple[int, int]:
        """Where to continue next time: before the first run that has no end, and how many lines precede it."""
        first = min(self._open.values(), key=lambda run: run.offset, default=None)
        return (self.read_to, self.lines) if first is None else (first.offset, first.line - 1)

    def _lines(self, file: Any) -> Iterator[ScannedRun]:
        offset, number = self.read_to, self.lines
        for line in file:
            number += 1
            if line[-1] != _NEWLINE:
                self.size = offset + len(line)
                self.torn = unreadable(self.path, number, line)
                return
            if number == 1 or line.startswith(b'{"schema"'):
                self._header(offset, number, line)
            elif line[0] == _BRACKET:
                self._window(number, line)
            elif line.startswith(b'{"record"'):
                ended = self._record(number, line)
                if ended is not None:
                    yield ended
            elif line.startswith(b'{"columns"'):
                self._columns(number, line)
            elif not line.startswith(b'{"processes"') and line != b"\n":
                self._other(offset, number, line)
            offset += len(line)
            self.size = self.read_to = offset
            self.lines = number

    def _header(self, offset: int, number: int, line: bytes) -> None:
        quick = _HEADER_ID.match(line)
        if quick is not None and line.endswith(b"}\n"):
            run_id = quick[1].decode()
        else:
            header = parse_line(line)
            try:
                check_header(self.path, number, header)
            except StoreError as error:
                self._current = None
                if number == 1:
                    raise
                self._problem(str(error))
                return
            if "shared" in header:
                self.shared = shared_part(header)
                return
            run_id = str(header.get("id"))
        self._current = self._open[run_id] = _OpenRun(run_id, offset, number)

    def _columns(self, number: int, line: bytes) -> None:
        run = self._current
        if run is None:
            return
        sampler_and_width = self._samplers.get(line)
        if sampler_and_width is None:
            entry = parse_line(line)
            columns = entry.get("columns") if isinstance(entry, dict) else None
            if not isinstance(columns, list):
                run.sampler = None
                self._problem(unreadable(self.path, number, line))
                return
            sampler_and_width = self._samplers[line] = (Sampler(columns), len(columns) + 2)
        run.sampler, run.width = sampler_and_width

    def _window(self, number: int, line: bytes) -> None:
        run = self._current
        if run is None:
            return
        try:
            values = _scan_json(line.decode(), 0)[0]
        except (ValueError, StopIteration, RecursionError):
            values = None
        if run.sampler is None or not isinstance(values, list) or len(values) != run.width:
            self._problem(unreadable(self.path, number, line))
            return
        try:
            run.samples.append(run.sampler.take(values[0], values[0] - run.before, values[2:]))
            run.before = values[0]
        except (TypeError, IndexError):
            self._problem(unreadable(self.path, number, line))

    def _record(self, number: int, line: bytes) -> ScannedRun | None:
        record = final_record(_used_part(line))
        run = self._current
        if not isinstance(record, dict) or not isinstance(record.get("id"), str):
            self._problem(unreadable(self.path, number, line))
            return None
        if run is None or run.run_id != record["id"]:
            run = self._open.get(record["id"])
        if run is None:
            if not self._resumed:  # else it began before, and ended before too
                self._problem(f"{self.path}: line {number} is the record of a run without a header and was skipped")
            return None
        del self._open[run.run_id]
        return ScannedRun(run.run_id, cast("Record", record), run.offset, run.line, run.samples)

    def _other(self, offset: int, number: int, line: bytes) -> None:
        entry = parse_line(line)
        if isinstance(entry, dict) and "schema" in entry:
            self._header(offset, number, line)
        elif isinstance(entry, dict) and isinstance(entry.get("labels"), dict):
            self.amendments.append(Amendment(str(entry.get("run")), entry["labels"]))
        elif isinstance(entry, dict) and "removed" in entry:
            self._open.pop(str(entry["removed"]), None)
            self.amendments.append(Amendment(str(entry["removed"]), None))
        elif isinstance(entry, dict) and "run" in entry:
            self._current = self._open.get(str(entry["run"]))
        else:
            if self._current is not None:
                self._current.sampler = None  # its columns may have been declared again in this line
            self._problem(unreadable(self.path, number, line))

    def _problem(self, message: str) -> None:
        self._problems += 1
        if self._problems <= _MOST_PROBLEMS:
            self._warn(message)

    def _report_rest(self) -> None:
        if self._problems > _MOST_PROBLEMS:
            self._warn(f"{self.path}: {self._problems - _MOST_PROBLEMS} more lines cannot be read")


def _used_part(line: bytes) -> Any:
    """What the index uses of a record; None when the line is none. The rest is parsed when the run is shown."""
    try:
        text = line.decode()
        cut = text.find(_UNUSED)
        if cut > 0 and text.endswith("}}\n"):
            # A quote within a text is escaped, so this is the key and nothing a job was called.
            record = _scan_json(text[:cut] + "}}", 0)[0]["record"]
            if "usage" in record and "wall_seconds" in record:
                return record
    except (ValueError, StopIteration, KeyError, TypeError, RecursionError):
        pass  # not as `run` writes it: then as a whole
    entry = parse_line(line)
    return entry.get("record") if isinstance(entry, dict) else None


def file_size(path: str) -> tuple[int, int]:
    """Size and time of the last change (ns)."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
