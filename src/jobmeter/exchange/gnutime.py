"""Reads reports of GNU `time -v`: one in a file, several in a row (`-a`), or amid the stderr of the job."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.exchange.cells import MOST_SECONDS, BadCell, clock, count, number
from jobmeter.exchange.foreign import (
    FILE_TIME,
    Facts,
    Figures,
    Item,
    Items,
    UnusableRow,
    counter,
    decoded,
    gauge,
    run_of,
)
from jobmeter.model import Across, Measurement, Outcome, Quality, Status

SOURCE = "gnutime"
KIND = SOURCE
WORDS = "GNU `time -v`"
OPENING = '\tCommand being timed: "'
_LAST = "Exit status"
_BLOCK_BYTES = 512  # of ru_inblock and ru_oublock, getrusage(2)
_ENDED = re.compile(r"Command (exited with non-zero status|terminated by signal|stopped by signal) (\d+)")


def _waited(key: str, unit: str, what: str) -> Measurement:
    whose = "of the command and of the processes that it waited for"
    return counter(f"gnutime_{key}", unit, Across.LAST, f"{what} {whose}.", Quality.AT_LEAST)


MAXRSS = gauge(
    "gnutime_maxrss", "bytes", Across.MAX,
    "Peak resident memory of the largest process, as GNU time reports it.", Quality.AT_LEAST,
)  # fmt: skip
CPU = _waited("cpu_seconds", "seconds", "CPU time")
USER = _waited("user_seconds", "seconds", "CPU time in user mode")
SYSTEM = _waited("system_seconds", "seconds", "CPU time in the kernel")
READ = _waited("read_bytes", "bytes", "Bytes read from disk")
WRITE = _waited("write_bytes", "bytes", "Bytes written to disk")
COUNTS = {
    "Major (requiring I/O) page faults": _waited("major_faults", "count", "Page faults with a wait for a disk"),
    "Minor (reclaiming a frame) page faults": _waited("minor_faults", "count", "Page faults without a disk"),
    "Voluntary context switches": _waited("voluntary_switches", "count", "Waits"),
    "Involuntary context switches": _waited("involuntary_switches", "count", "Involuntary context switches"),
}
MEASUREMENTS: tuple[Measurement, ...] = (MAXRSS, CPU, USER, SYSTEM, READ, WRITE, *COUNTS.values())


class _Block(NamedTuple):
    """One report: where it begins, and its lines."""

    line: int
    command: str
    ending: str | None  # the line before it, if it reports a failure or a signal
    values: dict[str, str]


def fits(first_line: str, beginning: str) -> bool:
    return any(line.startswith(OPENING) for line in beginning.split("\n"))


def read(path: str, file: BinaryIO) -> Items:
    """The runs in a file. Its path identifies them, because GNU time records neither host nor time."""
    blocks = list(_blocks(path, file))
    if not blocks:
        raise UsageError(f"{path}: has no report of GNU `time -v`")
    ended: float | None = os.fstat(file.fileno()).st_mtime
    made: list[Item] = []
    # The last report was written when the file was; each earlier one, at the latest when the next run began.
    for order, block in reversed(list(enumerate(blocks))):
        if isinstance(block, UnusableRow):
            made.append(block)
            ended = None
            continue
        try:
            facts = _facts(path, block, order, ended)
            made.append(run_of(facts))
        except BadCell as bad:
            made.append(UnusableRow(f"{path}: line {block.line}", str(bad)))
            ended = None
            continue
        ended = None if ended is None else ended - (facts.wall_seconds or 0.0)
    yield from reversed(made)


def _blocks(path: str, file: BinaryIO) -> Iterator[_Block | UnusableRow]:
    block: _Block | None = None
    before: str | None = None
    open_command = False
    for line, text, why in decoded(file):
        if text is None:
            if block is not None:
                yield UnusableRow(f"{path}: line {line}", why)
                block = None
            continue
        if text.startswith(OPENING):
            if block is not None:
                yield _torn(path, block)
            block = _Block(line, text[len(OPENING) :], before, {})
            open_command = True
        elif block is not None and open_command and not text.startswith("\tUser time (seconds): "):
            block = block._replace(command=f"{block.command}\n{text}")  # a command of several lines
        elif block is not None:
            open_command = False
            name, _, value = text.strip().rpartition(": ")
            block.values[name] = value
            if name == _LAST:
                yield block
                block = None
        before = text if _ENDED.fullmatch(text) else None
    if block is not None:
        yield _torn(path, block)


def _torn(path: str, block: _Block) -> UnusableRow:
    return UnusableRow(f"{path}: line {block.line}", "the report that begins here has no end (no 'Exit status')")


def _facts(path: str, block: _Block, order: int, ended: float | None) -> Facts:
    command = block.command.removesuffix('"')
    values = block.values
    wall = clock(_needed(values, "Elapsed (wall clock) time (h:mm:ss or m:ss)"), "elapsed time")
    words = command.split()
    return Facts(
        source=SOURCE,
        identity=(
            os.path.realpath(path) if os.path.isfile(path) else "",
            str(order),
            command,
            block.ending or "",
            *map(": ".join, values.items()),
        ),
        where=f"{path}: line {block.line}",
        name=os.path.basename(words[0]) if words else "?",
        command=[command],
        outcome=_outcome(block),
        figures=_figures(values),
        ended=ended,
        wall_seconds=wall,
        provenance={"times_from": FILE_TIME},
    )


def _needed(values: dict[str, str], name: str) -> str:
    if name not in values:
        raise BadCell(f"it has no line {name!r}")
    return values[name]


def _figures(values: dict[str, str]) -> Figures:
    user = number(_needed(values, "User time (seconds)"), "user time", MOST_SECONDS)
    system = number(_needed(values, "System time (seconds)"), "system time", MOST_SECONDS)
    figures: Figures = [
        (CPU, {"total": round(user + system, 3)}),
        (USER, {"total": user}),
        (SYSTEM, {"total": system}),
    ]
    largest = count(_needed(values, "Maximum resident set size (kbytes)"), "maximum resident set size") * 1024
    if largest:
        figures.append((MAXRSS, {"peak": largest}))
    for name, measurement in (("File system inputs", READ), ("File system outputs", WRITE)):
        if name in values:
            figures.append((measurement, {"total": count(values[name], name) * _BLOCK_BYTES}))
    figures += [(COUNTS[name], {"total": count(values[name], name)}) for name in COUNTS if name in values]
    return figures


def _outcome(block: _Block) -> Outcome:
    """How the command ended. A killed one has `Exit status: 0`; only the line before the report names the signal."""
    ending = _ENDED.fullmatch(block.ending or "")
    if ending is not None and "signal" in ending[1]:
        return Outcome(Status.KILLED, None, int(ending[2]))
    code = count(block.values[_LAST], "exit status")
    return Outcome(Status.COMPLETED if code == 0 else Status.FAILED, code)
