"""Reads a journal file for the index: quickly, in bounded memory, from where the last scan ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jobmeter.analyse.timeline import Counters, Sampler, WindowSample
from jobmeter.errors import StoreError
from jobmeter.journal.lines import LONGEST_LINE, open_journal, parse_line, read_lines, skip_line, too_long
from jobmeter.journal.reader import (
    check_schema,
    final_record,
    header_id,
    quick_id,
    read_shared,
    shared_part,
    skipped,
    unreadable,
)
from jobmeter.model import Status
from jobmeter.record.checks import check_texts
from jobmeter.record.types import LARGEST_STORED
from jobmeter.record.validate import check_indexed, check_labels
from jobmeter.store.index.quick_json import parse_journal_line

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_UNUSED = b',"measurements":{'
"""Begins the part of a record that the index does not use: more than half of it, and of the time to parse it."""
_IMPORTED = b'"imported":{"from":'
"""Precedes, in that part, the name of the tool that recorded an imported run, which the index does use."""
_NEWLINE, _BRACKET = b"\n["
_RUNNING = Status.RUNNING.value
_MOST_PROBLEMS = 5
"""How many problems of one file are reported one by one."""
_LONGEST_RUN = 1e11
"""Seconds, as in `record.types`."""


class ScannedRun(NamedTuple):
    """A run of this file; `record` is None if the run has no end."""

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
    """A run whose record has not been read yet."""

    __slots__ = ("counters", "line", "offset", "run_id", "sampler", "samples", "width")

    def __init__(self, run_id: str, offset: int, line: int) -> None:
        self.run_id = run_id
        self.offset = offset
        self.line = line
        self.sampler: Sampler | None = None
        self.width = 0
        self.counters: Counters = {}
        self.samples: list[WindowSample] = []


class Scan:
    """Reads one file. After `runs` is exhausted, the attributes say how far the file was read and what it contains."""

    def __init__(self, path: str, offset: int, lines: int, warn: Callable[[str], None]) -> None:
        self.path = path
        self.shared: dict[str, Any] = {}
        self.amendments: list[Amendment] = []
        self.read_to = offset
        self.lines = lines
        self.size = offset  # of the file when it was read, including a torn line
        self.torn: str | None = None  # the message for a last line without a newline
        self._resumed = offset > 0
        self._warn = warn
        self._problems = 0
        self._open: dict[str, _OpenRun] = {}
        self._current: _OpenRun | None = None
        self._samplers: dict[bytes, tuple[Sampler, int]] = {}

    def runs(self) -> Iterator[ScannedRun]:
        """Every run that ends in the rest of the file, then the runs without an end."""
        if self.read_to:
            self.shared = read_shared(self.path)
        with open_journal(self.path) as file:
            try:
                file.seek(self.read_to)
                yield from self._lines(file)
            except OSError as error:
                raise StoreError(f"{self.path}: {error.strerror}") from None
        for run in self._open.values():
            yield ScannedRun(run.run_id, None, run.offset, run.line, run.samples)
        self._report_rest()

    def resume_at(self) -> tuple[int, int]:
        """Where to continue next time: the offset of the first run without an end, and how many lines precede it."""
        first = min(self._open.values(), key=lambda run: run.offset, default=None)
        return (self.read_to, self.lines) if first is None else (first.offset, first.line - 1)

    def _lines(self, file: Any) -> Iterator[ScannedRun]:
        offset, number = self.read_to, self.lines
        for line in read_lines(file):
            number += 1
            if line[-1] != _NEWLINE:
                rest, whole = skip_line(file) if len(line) == LONGEST_LINE else (0, False)
                offset += len(line) + rest
                self.size = offset
                if not whole:
                    self.torn = too_long(self.path, number) if rest else unreadable(self.path, number, line)
                    return
                self._too_long(number)
                self.read_to, self.lines = offset, number
                continue
            if line[0] == _BRACKET and number > 1:
                self._window(number, line)
            elif number == 1 or line.startswith(b'{"schema"'):
                self._header(offset, number, line)
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

    def _too_long(self, number: int) -> None:
        if number == 1:
            raise StoreError(too_long(self.path, number))
        if self._current is not None:
            self._current.sampler = None  # its columns may have been declared again in this line
        self._problem(too_long(self.path, number))

    def _header(self, offset: int, number: int, line: bytes) -> None:
        run_id = quick_id(line)
        if run_id is None:
            header = parse_line(line)
            self._current = None
            try:
                check_schema(self.path, number, header)
            except StoreError as error:
                if number == 1:
                    raise
                self._problem(str(error))
                return
            if "shared" in header:
                self.shared, problem = shared_part(header)
                if problem is not None:
                    self._problem(skipped(self.path, number, problem))
                return
            run_id = header_id(line, header)
        if run_id is None:
            self._problem(f"{self.path}: line {number} is a header without an id")
            return
        self._current = self._open[run_id] = _OpenRun(run_id, offset, number)

    def _columns(self, number: int, line: bytes) -> None:
        run = self._current
        if run is None:
            return
        sampler_and_width = self._samplers.get(line)
        if sampler_and_width is None:
            entry = parse_line(line)
            columns = entry.get("columns") if isinstance(entry, dict) else None
            if check_texts(columns) is not None or not isinstance(columns, list):
                run.sampler = None
                self._problem(unreadable(self.path, number, line))
                return
            sampler_and_width = self._samplers[line] = (Sampler(["seconds", "samples", *columns]), len(columns) + 2)
        run.sampler, run.width = sampler_and_width

    def _window(self, number: int, line: bytes) -> None:
        run = self._current
        if run is None:
            return
        values = parse_journal_line(line)
        if run.sampler is None or values is None or len(values) != run.width:
            self._problem(unreadable(self.path, number, line))
            return
        try:
            sample = run.sampler.take(values[0], run.counters, values)
            seconds, cpu, memory, processes = sample
            # SQL must be able to store these, and curves to show them. Comparing a text raises TypeError.
            if (
                0 <= seconds <= _LONGEST_RUN
                and (cpu is None or 0 <= cpu <= LARGEST_STORED)
                and (memory is None or 0 <= memory <= LARGEST_STORED)
                and (processes is None or 0 <= processes <= LARGEST_STORED)
            ):
                run.samples.append(sample)
                return
        except (TypeError, IndexError, OverflowError):
            pass  # a text, or a list, where a number belongs
        self._problem(unreadable(self.path, number, line))

    def _record(self, number: int, line: bytes) -> ScannedRun | None:
        record, run = _used_part(line), self._current
        if not isinstance(record, dict):
            self._problem(unreadable(self.path, number, line))
            return None
        problem = check_indexed(record)
        if problem is not None:
            self._problem(skipped(self.path, number, f"record{problem}"))
            return None
        if record["outcome"]["status"] == _RUNNING:
            final_record(record)
        if run is None or run.run_id != record["id"]:
            run = self._open.get(record["id"])
        if run is None:
            if not self._resumed:  # else it began before this part of the file, and is in the index already
                self._problem(f"{self.path}: line {number} is the record of a run without a header and was skipped")
            return None
        del self._open[run.run_id]
        if run is self._current:
            self._current = None
        return ScannedRun(run.run_id, cast("Record", record), run.offset, run.line, run.samples)

    def _other(self, offset: int, number: int, line: bytes) -> None:
        entry = parse_line(line)
        if isinstance(entry, dict) and "schema" in entry:
            self._header(offset, number, line)
        elif isinstance(entry, dict) and _is_ascii(entry.get("run")):
            if "gap" in entry:
                return  # the journal's reader reports it
            if "labels" not in entry:
                self._current = self._open.get(entry["run"])
            elif (problem := check_labels(entry["labels"])) is None:
                self.amendments.append(Amendment(entry["run"], entry["labels"]))
            else:
                self._problem(skipped(self.path, number, f"labels{problem}"))
        elif isinstance(entry, dict) and _is_ascii(entry.get("removed")):
            self._open.pop(entry["removed"], None)
            self.amendments.append(Amendment(entry["removed"], None))
        elif isinstance(entry, dict) and "gap" in entry:
            return  # the journal's reader reports it
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


def _is_ascii(value: Any) -> bool:
    """Whether the value can be the id of a run."""
    return isinstance(value, str) and value.isascii()


def _used_part(line: bytes) -> Any:
    """The part of a record that the index uses; None if the line has none. The rest is parsed when the run is shown."""
    cut = line.find(_UNUSED)
    if cut > 0 and line.endswith(b"}}\n") and line.find(_IMPORTED, cut) < 0:
        # Quotes within texts are escaped, so this is the key itself, not part of a job's name.
        record = _record_in(line[:cut] + b"}}")
        if isinstance(record, dict) and "usage" in record and "wall_seconds" in record:
            return record
    return _record_in(line)  # imported, or not as `run` writes it


def _record_in(line: bytes) -> Any:
    entry = parse_journal_line(line)
    return entry.get("record") if isinstance(entry, dict) else None


def file_size(path: str) -> tuple[int, int]:
    """The size in bytes, and the time of the last change in nanoseconds."""
    status = os.lstat(path)
    return status.st_size, status.st_mtime_ns
