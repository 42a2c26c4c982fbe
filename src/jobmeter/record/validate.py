"""Validates what is read from files: run records and the lines of journals. Made from the types, as the schema is.

It accepts what the JSON Schema accepts, except texts and times that cannot be stored or computed with. Values are
checked here once, where they are read; all other code relies on the types.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from jobmeter.model import Kind, Quality
from jobmeter.record.checks import (
    check_any,
    check_of,
    check_text,
    dict_check,
    list_check,
    number_check,
    object_check,
)
from jobmeter.record.compiled_check import Check
from jobmeter.record.types import LARGEST, Amount, Count, Description, Header, ProcessEntry, Record, Seconds

NOT_INDEXED = ("measurements", "processes", "threads", "peaks", "devices", "provenance", "findings")
"""The fields of a record that the index does not use: they are parsed and checked when the run is read."""


class _IndexedFigure(TypedDict):
    """What the index uses of a headline figure."""

    value: Amount
    quality: Annotated[str, Quality]


class _IndexedHost(TypedDict, total=False):
    """What the index uses of a host."""

    name: str


def check_record(value: Any) -> str | None:
    """Check a whole run record."""
    return _check_of_record()(value)


def check_indexed(value: Any) -> str | None:
    """Check the part of a run record that the index uses; the rest may be missing."""
    return _check_of_indexed()(value)


def check_header_fields(value: Any) -> str | None:
    """Check the header of a run in a journal, or a part of one."""
    return _check_of_header()(value)


def check_described(value: Any) -> str | None:
    """Check the descriptions of measurements."""
    return dict_check(check_of(Description))(value)


def check_processes(value: Any) -> str | None:
    """Check the processes that lived in a window."""
    return list_check(check_of(ProcessEntry))(value)


def check_labels(value: Any) -> str | None:
    """Check changes of labels; null removes one."""
    return dict_check(lambda label: None if label is None else check_text(label))(value)


def problem_of_window(seconds: Any, samples: Any, cells: Mapping[str, Any], kinds: Mapping[str, str]) -> str | None:
    """What is wrong with a window, or None; `kinds` are the kinds of its measurements."""
    if (problem := _SECONDS(seconds)) or (problem := _COUNT(samples)):
        return problem
    for key, cell in cells.items():
        if cell is not None and (problem := _CELLS.get(kinds.get(key, ""), check_any)(cell)):
            return f".{key}{problem}"
    return None


# Made when first needed: it takes some milliseconds to make one from its type.
@functools.cache
def _check_of_record() -> Check:
    return check_of(Record)


@functools.cache
def _check_of_indexed() -> Check:
    return object_check(Record, NOT_INDEXED, all_fields=False, usage=dict[str, _IndexedFigure], host=_IndexedHost)


@functools.cache
def _check_of_header() -> Check:
    return object_check(Header, all_optional=True, measurements=dict[str, Description])


def _level(value: Any) -> str | None:
    """The cell of a gauge: `[peak, mean]`, or one number where the level did not move."""
    if type(value) is not list:
        return _FINITE(value)
    return _LEVELS(value) if len(value) == 2 else " is not [peak, mean]"


_FINITE = number_check(float, -LARGEST, LARGEST)
_NOT_NEGATIVE = number_check(float, 0, LARGEST)
_LEVELS = list_check(_FINITE)
_SECONDS, _COUNT = check_of(Seconds), check_of(Count)
_CELLS: dict[str, Check] = {
    Kind.GAUGE.value: _level,
    Kind.COUNTER.value: _NOT_NEGATIVE,
    Kind.LABEL.value: check_text,
    Kind.CATEGORY.value: dict_check(_NOT_NEGATIVE),
}
