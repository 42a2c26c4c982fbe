"""Waiting for what must happen, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

LONG = 200.0
"""Seconds. What has not happened by then never will, also on a machine that does ten other things."""


def wait_for(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONG
    while not happened():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)


def lives(pid: int) -> bool:
    """Whether a process can still run: a zombie cannot, though it is in /proc until its parent waits for it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
