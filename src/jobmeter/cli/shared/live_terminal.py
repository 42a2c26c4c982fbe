"""Terminal support for displays that are redrawn in place."""

from __future__ import annotations

import contextlib
import termios
from collections.abc import Iterator
from typing import IO, Any


class PassingTerminal:
    """A stream to a terminal that may go away at any moment: output is then lost, and the run goes on."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, words: str) -> int:
        try:
            return self._stream.write(words)
        except OSError:
            return len(words)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            pass  # as above

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def quiet_control_keys(stream: IO[str]) -> Iterator[None]:
    """Stop the terminal from echoing control keys, as `^C`, which would shift the display."""
    try:
        before = termios.tcgetattr(stream)
        now = termios.tcgetattr(stream)
        now[3] &= ~termios.ECHOCTL
        termios.tcsetattr(stream, termios.TCSADRAIN, now)
    except (termios.error, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(stream, termios.TCSADRAIN, before)
