"""The exceptions that jobmeter raises. `cli.main` turns each into a message and an exit code."""

from __future__ import annotations

_LONGEST = 80  # characters of a value that a message quotes


class JobmeterError(Exception):
    """Base of all errors jobmeter raises on purpose; the text is meant for people."""

    exit_code = 125

    def __init__(self, message: str = "", *details: str) -> None:
        """The message is one line, whatever it quotes; each of `details` is a further line below it."""
        super().__init__(message, *details)
        self.lines = (message, *details)

    def __str__(self) -> str:
        return "\n".join(self.lines)


class UsageError(JobmeterError):
    """An option, key or value that cannot be used. Nothing was started."""

    exit_code = 2


class OptionRefused(UsageError):
    """An option that has no effect on this kind of run. Nothing was started."""


class CommandNotFound(JobmeterError):
    """The job's program does not exist."""

    exit_code = 127


class CommandNotExecutable(JobmeterError):
    """The job's program exists and cannot be executed."""

    exit_code = 126


class LaunchError(JobmeterError):
    """The job could not be started, for a reason that is not the command's."""


class StoreError(JobmeterError):
    """The store or a journal in it cannot be read or written."""


class NoData(JobmeterError):
    """A source is not available here. The text says why; this is not a failure."""


def quote(value: object) -> str:
    """The value as messages show it: in quotes, on one line, not too long."""
    text = str(value)
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
