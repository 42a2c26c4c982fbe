"""Sweeps: the values that parameters take, and texts with `{i}` or `{i:03d}` filled in."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from jobmeter.errors import quote
from jobmeter.suggestion import suggest
from jobmeter.workflow.spec.read.spec_errors import Problem

if TYPE_CHECKING:
    from jobmeter.workflow.spec.read.schema import Parameterised  # it loads pydantic, which `bench` does not need

MOST_JOBS = 1_000_000
_NUMBER = r"-?\d{1,15}(?:\.\d{1,15})?(?:[eE]-?\d{1,2})?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*:\s*({_NUMBER})(?:\s*:\s*({_NUMBER}))?\s*")
_ITEM = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^,'"][^,]*?)?)\s*(?:,|$)""")
_DASH = re.compile(r"\d+-\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")

Values = dict[str, str]
"""The value of each parameter, as text."""


def parameter_values(name: str, written: str | list[str]) -> list[str]:
    """The values of a parameter: a list, a range `1:100` or `0:1:0.1` that includes its end, `[a, b]`, or one value.

    Raises Problem if they are not valid.
    """
    if not _NAME.fullmatch(name):
        raise Problem(f"{quote(name)} cannot be the name of a parameter: use letters, digits and _")
    if isinstance(written, list):
        values = written
    elif match := _RANGE.fullmatch(written):
        return _range(written, match[1], match[2], match[3] or "1")
    elif written.strip().startswith("[") and written.strip().endswith("]"):
        values = _items(written, written.strip()[1:-1])
    elif _DASH.fullmatch(written):
        raise Problem(f"{quote(written)} is not a range. Write {written.replace('-', ':')}, or a list.")
    else:
        values = [written]
    if not values:
        raise Problem("has no values")
    return values


def _items(written: str, inner: str) -> list[str]:
    """`1, 5`, `'adam', 'sgd'` or `train, test`: a comma in quotes belongs to its text."""
    items, at = [], 0
    if not inner.strip():
        return []
    inner = inner.rstrip().removesuffix(",")
    while at <= len(inner):
        match = _ITEM.match(inner, at)
        if match is None:
            raise Problem(f"{quote(written)} cannot be read as a list: a quote is not closed, or is in the wrong place")
        items.append(match[match.lastindex] if match.lastindex else "")
        at = match.end() + (match.end() == len(inner) and not match[0].endswith(","))
        if at == len(inner) and match[0].endswith(","):
            items.append("")
            break
    return items


def _range(written: str, first: str, last: str, step: str) -> list[str]:
    """The numbers of a range, the last included; decimal, so that adding 0.1 many times causes no rounding errors."""
    begin, end, by = Decimal(first), Decimal(last), Decimal(step)
    if by == 0:
        raise Problem(f"{quote(written)} has a step of 0")
    count = math.floor((end - begin) / by) + 1
    if count < 1:
        raise Problem(f"{quote(written)} is an empty range")
    if count > MOST_JOBS:
        raise too_many(count)
    return [f"{begin + by * number:f}" for number in range(count)]


def selected_parameters(spec: Parameterised, shared: Mapping[str, str | list[str]]) -> dict[str, list[str]]:
    """The values of an entry's parameters: those of the spec that it uses, and its own, which take precedence."""
    written: dict[str, str | list[str]] = {}
    for position, name in enumerate(spec.use_parameters):
        if name not in shared:
            message = f"there is no parameter {quote(name)}. {suggest(name, shared)}"
            raise Problem(message, path=("use_parameters", position))
        written[name] = shared[name]
    selected = {}
    for name, values in {**written, **spec.parameters}.items():
        try:
            selected[name] = parameter_values(name, values)
        except Problem as problem:
            problem.path = ("parameters", name) if name in spec.parameters else ("use_parameters",)
            raise
    return selected


def too_many(count: int) -> Problem:
    return Problem(f"this makes {count:,} jobs, and {MOST_JOBS:,} is the maximum")


def combinations(parameters: Mapping[str, list[str]], mode: str) -> Iterator[Values]:
    """The values of each job: all combinations, the first parameter changing slowest; or with `zip`, side by side."""
    names = list(parameters)
    lists = parameters.values()
    rows = zip(*lists) if mode == "zip" else itertools.product(*lists)
    return (dict(zip(names, row)) for row in rows)


def count_combinations(parameters: Mapping[str, list[str]], mode: str) -> int:
    """How many jobs the parameters make. Raises Problem if the lists for `zip` differ in length."""
    lengths = {name: len(values) for name, values in parameters.items()}
    if mode == "zip":
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise Problem(
                f"with parameter_mode zip all need the same number of values: {counts}", path=("parameter_mode",)
            )
        return next(iter(lengths.values()), 1)
    return math.prod(lengths.values())


class Filler:
    """Fills the parameters of one sweep into texts. Other braces, and `${i}` of the shell, stay as they are."""

    def __init__(self, names: list[str]) -> None:
        anyone = "|".join(map(re.escape, names))
        self._placeholder = re.compile(rf"(?<!\$)\{{({anyone})(?::([^{{}}]*))?\}}") if names else None
        self._templates: dict[str, list[tuple[str, str, str]]] = {}

    def fill(self, text: str, values: Values) -> str:
        """`text` with the values filled in. Raises Problem if a value cannot be written in the requested format."""
        parts = self._templates.get(text)
        if parts is None:
            parts = self._templates[text] = self._parts(text)
        if not parts:
            return text
        return "".join([before + _written(name, spec, values) for before, name, spec in parts])

    def mentioned(self, text: str) -> set[str]:
        """The parameters that have a placeholder in `text`."""
        return {name for _, name, _ in self._parts(text) if name}

    def _parts(self, text: str) -> list[tuple[str, str, str]]:
        """The text before each placeholder, its name and its format, then the rest; empty without placeholders."""
        if self._placeholder is None or "{" not in text:
            return []
        parts, at = [], 0
        for match in self._placeholder.finditer(text):
            parts.append((text[at : match.start()], match[1], match[2] or ""))
            at = match.end()
        return [*parts, (text[at:], "", "")] if parts else []


def _written(name: str, spec: str, values: Values) -> str:
    if not name:
        return ""
    value = values[name]
    return _formatted(name, spec, value) if spec else value


def _formatted(name: str, spec: str, value: str) -> str:
    """The value in a format such as `03d`: as an integer, a number or a text, whichever fits first."""
    if re.search(r"\d{4}", spec):
        raise Problem(f"{{{name}:{spec}}} is wider than any name may be")
    readers: tuple[type[int] | type[float] | type[str], ...] = (int, float, str)
    for read in readers:
        try:
            return format(read(value), spec)
        except (ValueError, OverflowError):
            continue
    raise Problem(f"{{{name}:{spec}}} cannot be written for the value {quote(value)}")
