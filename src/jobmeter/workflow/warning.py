"""Warnings of a runner: what is wrong with the machine is wrong for every job, and is reported only once."""

from __future__ import annotations

from collections.abc import Callable


def warn_once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """A function that passes each message to `warn` only the first time."""
    messages: set[str] = set()

    def warn_of_new(message: str) -> None:
        if message not in messages:
            messages.add(message)
            warn(message)

    return warn_of_new
