"""Writes what goes wrong with measuring to the program's log: each message once, and never as a failure of its work."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_MOST = 100
"""How many different messages are logged at most; a program may run for months."""


class Warnings:
    """Writes to the logger `jobmeter`."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def warn_once(self, message: str) -> None:
        if message in self._logged or len(self._logged) >= _MOST:
            return
        self._logged.add(message)
        logging.getLogger("jobmeter").warning("jobmeter: %s", message.replace("\n", " "))

    @contextlib.contextmanager
    def instead_of_failing(self, consequence: str) -> Iterator[None]:
        """Log any exception of the `with` block, instead of raising it; the message begins with `consequence`."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the task goes on, whatever fails here
            from jobmeter.errors import JobmeterError

            why = str(error) if isinstance(error, JobmeterError) else f"{type(error).__name__}: {error}"
            self.warn_once(f"{consequence}: {why}")
