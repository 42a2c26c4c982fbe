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
