"""Determines whether the writer of a journal still runs."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.kernel.procfs import read_stat

_SILENT = 3600.0
"""Seconds without a line after which a writer on another machine counts as ended. It writes every few seconds."""


def writer_lives(header: Mapping[str, Any], written: float, machine: Machine = THIS_MACHINE) -> bool:
    """Whether the writer of a journal with this header may write more; `written` is when the file last grew."""
    writer = header.get("writer")
    if not isinstance(writer, dict) or not isinstance(writer.get("pid"), int):
        return False  # an import, or made by hand: nothing writes to it
    if is_elsewhere(header):
        return time.time() - written < _SILENT
    return _process_lives(writer["pid"], writer.get("start"), machine)


def is_elsewhere(header: Mapping[str, Any]) -> bool:
    """Whether the journal was written on another machine, whose processes cannot be seen from here.

    The writer's machine is that of the job, unless the header names another one, as that of a workflow runner does.
    """
    writer, host = header.get("writer"), header.get("host")
    written_on = writer.get("host") if isinstance(writer, dict) else None
    if written_on is None and isinstance(host, dict):
        written_on = host.get("name")
    return "writer" in header and written_on != os.uname().nodename


def _process_lives(pid: int, start: object, machine: Machine) -> bool:
    if machine.has_proc():
        try:
            stat = read_stat(machine, pid)
        except (OSError, ValueError):
            return False
        # Pids are reused: one with another start time is not the writer.
        return stat.state not in "ZX" and start in (None, stat.start)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
