"""Lines of text for a terminal: broken between words, never within one."""

from __future__ import annotations

import re

_BEFORE_UNIT = r"(?<=\d) (?=(?:[KMGTPE]i)?B\b|m?s\b|%)|(?<= =) (?=\d)|(?<=\w) (?== \d)"
_TAG = r"(?<=\[at) (?=least)|(?<=,) (?=\w+\])"
"""The blanks in `[at least, cgroup]`."""
_TOGETHER = "\0"


def wrap(line: str, width: int | None, indent: int) -> list[str]:
    """The line in pieces of at most `width` columns, all but the first indented by `indent` columns more.

    With a width of None, or 0 of a terminal that does not know its width, the line is not broken. A word that is wider,
    such as a path, is never broken.
    """
    if not width or len(line) <= width:
        return [line]
    import textwrap  # late: few lines are too long

    # A number stays with its unit, a quality with its source.
    line = re.sub(f"{_BEFORE_UNIT}|{_TAG}", _TOGETHER, line)
    before = line[: len(line) - len(line.lstrip())]
    pieces = textwrap.wrap(
        line.strip(),
        width,
        initial_indent=before,
        subsequent_indent=" " * (len(before) + indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [piece.replace(_TOGETHER, " ") for piece in pieces]
