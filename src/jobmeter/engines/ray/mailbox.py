"""An actor between the driver and the nodes of one workflow: reports one way, cancels the other, both by long polls."""

from __future__ import annotations

import asyncio
import time
from typing import Any

MOST_BYTES = 32 << 20
"""Bytes of output that may wait here for the driver; beyond that, `put` waits."""
_LONG_POLL = 10.0
PATIENCE = 30.0
"""Seconds without a `take` after which the driver counts as dead."""

Batch = tuple[str, int, list[list[Any]]]
"""The id of a task, the number of the first report, and the reports."""


class Mailbox:
    """Used by one driver and by any number of nodes; every method may wait."""

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._bytes = 0
        self._cancelled: list[tuple[str | None, bool]] = []  # in the order in which they came; None is every task
        self._changed = asyncio.Condition()
        self._open_polls = 0
        self._last_poll = time.monotonic()

    async def put(self, batch: Batch, size: int) -> None:
        """Add reports of a task. Waits while there is too much output, unless the driver is dead."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._bytes < MOST_BYTES or not self.driver_lives())
            self._batches.append(batch)
            self._bytes += size
            self._changed.notify_all()

    async def take(self) -> list[Batch]:
        """For the driver: what came since the last call. Waits for reports; after some seconds, returns none."""
        self._open_polls += 1
        try:
            async with self._changed:
                await self._wait(lambda: bool(self._batches))
                batches, self._batches, self._bytes = self._batches, [], 0
                self._changed.notify_all()
                return batches
        finally:
            self._open_polls -= 1
            self._last_poll = time.monotonic()

    async def cancel(self, task: str | None, at_once: bool) -> None:
        """Have the nodes end a task; None: all tasks."""
        async with self._changed:
            self._cancelled.append((task, at_once))
            self._changed.notify_all()

    async def cancels(self, received: int) -> tuple[bool, list[tuple[str | None, bool]]]:
        """For a node: whether the driver lives, and the cancels after the first `received`. It waits for one."""
        async with self._changed:
            await self._wait(lambda: len(self._cancelled) > received)
            return self.driver_lives(), self._cancelled[received:]

    def driver_lives(self) -> bool:
        return self._open_polls > 0 or time.monotonic() - self._last_poll < PATIENCE

    async def _wait(self, happened: Any) -> None:
        try:
            await asyncio.wait_for(self._changed.wait_for(happened), _LONG_POLL)
        except asyncio.TimeoutError:
            return
