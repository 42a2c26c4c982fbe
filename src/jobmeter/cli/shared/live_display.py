"""A display on stderr that is redrawn in place. A subclass for each command makes its lines, in `__rich_console__`."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import IO, TYPE_CHECKING, cast

from rich.live import Live

from jobmeter.cli.shared.console import TextConsole
from jobmeter.cli.shared.live_terminal import PassingTerminal, quiet_control_keys

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console, ConsoleOptions, RenderResult
    from typing_extensions import Self


class LiveDisplay(ABC):
    """Is shown inside its `with` block, and cleared at the end."""

    def __init__(self, per_second: float) -> None:
        """Redraw `per_second` times a second. While the display is shown, print through `console`."""
        self.console = TextConsole(cast("IO[str]", PassingTerminal(sys.stderr)))
        self._live = Live(
            self,
            console=self.console,
            refresh_per_second=per_second,
            transient=True,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._keys = quiet_control_keys(sys.stderr)
        self._keys.__enter__()
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        self._keys.__exit__(None, None, None)

    @abstractmethod
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines to show, in their present state."""
