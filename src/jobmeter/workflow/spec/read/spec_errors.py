"""Reporting what is wrong with a spec, and where: `pipeline.yaml:7: jobs[1].memory: …`, in one line."""

from __future__ import annotations

import re
from typing import Any

from jobmeter.errors import UsageError, quote

Path = tuple[str | int, ...]
"""The way to a value: `("jobs", 1, "memory")`."""

DEEPEST = 60
"""Levels of nesting. A spec has six."""
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


def too_deep(line: int | None = None) -> Problem:
    return Problem(f"it is nested deeper than {DEEPEST} levels", line=line)
