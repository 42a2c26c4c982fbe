"""Reporting what is wrong with a spec, and where: `pipeline.yaml:7:5: jobs[1].memory: …`, a line for each problem."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from jobmeter.errors import UsageError, quote

Path = tuple[str | int, ...]
"""The path to a value: `("jobs", 1, "memory")`."""

DEEPEST = 60
"""The most levels of nesting. A spec has six."""
MOST_REPORTED = 100
"""The most problems of one file that are listed."""
_WORD = re.compile(r"[\w-]+")


class Place(NamedTuple):
    """Line and column in a file, both from 1."""

    line: int
    column: int


class Problem(Exception):
    """Something that is wrong with a spec: the message, and where it is as far as known."""

    def __init__(self, text: str, at: Any = None, *, path: Path = (), place: Place | None = None) -> None:
        """`at` is a YAML event, at whose start the problem is."""
        super().__init__(text)
        self.text = text
        self.path = path
        self.place = place_of(at.start_mark) if at is not None else place


class SpecRefused(UsageError):
    """A spec that cannot be used: a line for each problem, in the order of the file."""

    problems: list[Problem]


def place_of(mark: Any) -> Place:
    """The place of a `Mark`."""
    return Place(mark.line + 1, mark.column + 1)


def refuse(file: str, problems: list[Problem]) -> SpecRefused:
    """The error for all that is wrong in `file`."""
    ordered = sorted(problems, key=lambda problem: problem.place or Place(0, 0))
    lines = [_line(file, problem) for problem in ordered[:MOST_REPORTED]]
    if len(ordered) > MOST_REPORTED:
        lines.append(f"{file}: {len(ordered) - MOST_REPORTED:,} more problems")
    refused = SpecRefused(*lines)
    refused.problems = ordered
    return refused


def _line(file: str, problem: Problem) -> str:
    where = f"{file}:{problem.place.line}:{problem.place.column}" if problem.place else file
    field = f" {path_text(problem.path)}:" if problem.path else ""
    return f"{where}:{field} {problem.text}"


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


def too_deep(place: Place | None = None) -> Problem:
    return Problem(f"it is nested deeper than {DEEPEST} levels", place=place)
