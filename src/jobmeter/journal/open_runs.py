"""Finds the unfinished runs in a file of many runs, without parsing it."""

from __future__ import annotations

import re

from jobmeter.journal.lines import LONGEST_LINE, open_journal, read_lines
from jobmeter.journal.reader import RunLocation, quick_id
from jobmeter.light_typing import NamedTuple

_RUN = re.compile(rb'\{"run":"([\w-]+)"\}')


class RunLocations(NamedTuple):
    """Where runs of a file begin."""

    unfinished: list[RunLocation]
    last_marked: RunLocation | None  # the last run whose header has the text that was searched for


def find_runs(path: str, marked: bytes) -> RunLocations:
    """The unfinished runs, and the last with `marked` in its header. Raises StoreError if the file cannot be read."""
    unfinished: dict[str, RunLocation] = {}
    last_marked: RunLocation | None = None
    current = ""
    offset = 0
    with open_journal(path) as file:
        for number, line in enumerate(read_lines(file, LONGEST_LINE), start=1):
            started = quick_id(line)
            if started is not None:
                current = started
                unfinished[started] = RunLocation(started, offset, number)
                last_marked = unfinished[started] if marked in line else last_marked
            elif (switch := _RUN.match(line)) is not None:
                current = switch[1].decode()
            elif line.startswith((b'{"record"', b'{"removed"')) and line.endswith(b"\n"):
                unfinished.pop(current, None)
            offset += len(line)
    return RunLocations(list(unfinished.values()), last_marked)
