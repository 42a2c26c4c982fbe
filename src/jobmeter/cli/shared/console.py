"""The console for tables and progress: what it shows are texts, never markup, and no text controls the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from jobmeter.terminal import printable_lines


class TextConsole(Console):
    """Styles are those of the program alone: whatever a name or a label contains is printed, not interpreted."""

    def __init__(self, file: IO[str], width: int | None = None) -> None:
        super().__init__(file=file, width=width, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is printed; those without `control` are text."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)
