"""Saying what is wrong with a spec, and where: `pipeline.yaml:7: jobs[1].memory: …`, in one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from jobmeter.errors import UsageError

Path = tuple[str | int, ...]
"""The way to a value: `("jobs", 1, "memory")`."""

DEEPEST = 60
"""Levels of nesting. A spec has six."""
_LONGEST = 80  # characters of a value that a message quotes
_WORD = re.compile(r"[\w-]+")


class Problem(Exception):
    """Something that is wrong with a spec: the text for people, and where it is as far as known."""

    def __init__(self, text: str, at: Any = None, *, path: Path = (), line: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.path = path
        self.line = at.start_mark.line + 1 if at is not None else line


def refuse(file: str, problems: list[Problem]) -> UsageError:
    """The error for what is wrong in `file`: the first of the problems, and how many more there are."""
    first = min(problems, key=lambda problem: problem.line or 0)
    where = f"{file}:{first.line}" if first.line else file
    field = f" {path_text(first.path)}:" if first.path else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return UsageError(f"{where}:{field} {first.text}{more}")


def path_text(path: Path) -> str:
    """The path as people write it: `jobs[1].resource_requirements.memory`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _WORD.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{quote(part)}]"
    return text


def quote(value: object) -> str:
    """The value as it stands in a message: in quotes, on one line, not too long."""
    text = str(value)
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def nearest(name: str, names: Iterable[str]) -> str:
    """The advice for a name that there is not: the one that was probably meant, else the names there are."""
    known = list(dict.fromkeys(names))
    # Every name is compared with every other: with very many that takes longer than it helps.
    near = difflib.get_close_matches(name, known, n=1) if len(known) <= 20_000 and len(name) <= 200 else []
    if near:
        return f"Did you mean {quote(near[0])}?"
    if not known:
        return "There are none."
    listed = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    return f"There are: {listed}."


def too_deep(line: int | None = None) -> Problem:
    return Problem(f"it is nested deeper than {DEEPEST} levels", line=line)
