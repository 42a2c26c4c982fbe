"""Marks in the index that a process is replacing journal files, so that readers notice if it was killed.

A file and the index cannot be replaced in one step. If the mark of a process that has ended is left, some files may
differ from the index, so all files are compared with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert

from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_stat
from jobmeter.store.index.liveness import writer_lives
from jobmeter.store.index.tables import index_state

_MARK = "rewriting "


def new_mark() -> dict[str, str]:
    """A mark of this process, to be added before it replaces files."""
    writer: dict[str, Any] = {"pid": os.getpid()}
    with contextlib.suppress(OSError, ValueError):  # no /proc
        writer["start"] = read_stat(THIS_MACHINE, os.getpid()).start
    about = {"writer": writer, "host": {"name": os.uname().nodename}, "began": time.time()}
    return {"name": f"{_MARK}{os.urandom(6).hex()}", "value": json.dumps(about)}


def add_mark(connection: Connection, mark: dict[str, str]) -> None:
    connection.execute(insert(index_state).prefix_with("OR REPLACE"), mark)


def remove_mark(connection: Connection, mark: dict[str, str]) -> None:
    connection.execute(delete(index_state).where(index_state.c.name == mark["name"]))


def marks_left(state: Mapping[str, str]) -> list[str]:
    """The names of marks whose process ended before it could remove the mark."""
    return [name for name, value in state.items() if name.startswith(_MARK) and not _lives(value)]


def _lives(value: str) -> bool:
    try:
        about = json.loads(value)
        return writer_lives(about, float(about["began"]))
    except (ValueError, KeyError, TypeError):
        return False
