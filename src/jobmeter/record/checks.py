"""Makes checks of values from their types.

A check takes a value and returns what is wrong with it, beginning with the place (`.usage.cpu_seconds.value is …`), or
None if the value is valid.
"""

from __future__ import annotations

import functools
import math
import re
import types
import typing
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Union

from jobmeter.errors import quote
from jobmeter.record.compiled_check import Check, compile_check
from jobmeter.record.field_types import allowed_terms, field_types, keywords_of
from jobmeter.record.types import LARGEST, LARGEST_STORED

DEEPEST = 20
"""Levels of nesting in unknown fields. Rendering JSON nests a few calls for each level, and Python allows 1000."""


@functools.cache
def check_of(hint: Any) -> Check:
    """The check of a type of `record.types`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _annotated(arguments[0], arguments[1:])
    if hint == list[str]:
        return check_texts
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if typing.is_typeddict(hint):
        return object_check(hint)
    if origin is typing.Literal:
        return _one_of(allowed_terms(hint, ()))
    if origin is list:
        return list_check(check_of(arguments[0]))
    if origin is dict:
        return dict_check(check_of(arguments[1]))
    if origin in (Union, types.UnionType):
        return _union(arguments)
    raise TypeError(f"{hint!r}: no check is known for this type")


def _annotated(hint: Any, notes: tuple[Any, ...]) -> Check:
    """The check of a type with what `Annotated` adds: its range, its pattern, or the terms that are allowed."""
    keywords = keywords_of(notes)
    if terms := allowed_terms(hint, notes):
        return _one_of(terms)
    if hint in (int, float) and keywords:
        return number_check(hint, keywords["minimum"], keywords.get("maximum", LARGEST))
    if "format" in keywords:
        return _moment(re.compile(keywords["pattern"], re.ASCII))
    if "pattern" in keywords:
        return _pattern(re.compile(keywords["pattern"], re.ASCII))
    if "minLength" in keywords:
        return _not_empty
    return check_of(hint)


def object_check(
    cls: Any, without: tuple[str, ...] = (), *, all_optional: bool = False, all_fields: bool = True, **instead: Any
) -> Check:
    """The check of a TypedDict, without some fields and with other types `instead` for some.

    Unknown fields are allowed if they are JSON; without `all_fields` they need not be checked.
    """
    hints = {**field_types(cls), **instead}
    checks = {name: check_of(hint) for name, hint in hints.items() if name not in without}
    required = frozenset(() if all_optional else cls.__required_keys__) - frozenset(without)

    def explain(value: Any) -> str | None:
        if type(value) is not dict:
            return f" is {_kind(value)}, not an object"
        for name, item in value.items():
            problem = check_text(name) or checks.get(name, check_any)(item)
            if problem is not None:
                return f".{_name(name)}{problem}"
        if not value.keys() >= required:
            return f".{min(required - value.keys())} is missing"
        return None

    return compile_check({name: hints[name] for name in checks}, required, explain, check_of, all_fields=all_fields)


def dict_check(check_value: Check) -> Check:
    def check(value: Any) -> str | None:
        if type(value) is not dict:
            return f" is {_kind(value)}, not an object"
        for name, item in value.items():
            problem = check_value(item)
            if problem is not None:
                return f".{_name(name)}{problem}"
        return None if "".join(value).isascii() else next(filter(None, map(check_text, value)), None)

    return check


def list_check(check_item: Check) -> Check:
    def check(value: Any) -> str | None:
        if type(value) is not list:
            return f" is {_kind(value)}, not an array"
        for number, item in enumerate(value):
            problem = check_item(item)
            if problem is not None:
                return f"[{number}]{problem}"
        return None

    return check


def _union(hints: tuple[Any, ...]) -> Check:
    """The check of a union: one of the types must pass. For objects, the field `kind` shows which one."""
    if hints[-1] is type(None):
        check_present = check_of(Union[hints[:-1]])
        return lambda value: None if value is None else check_present(value)
    by_kind = {typing.get_args(field_types(hint)["kind"])[0]: check_of(hint) for hint in hints}

    def check(value: Any) -> str | None:
        kind = value.get("kind") if type(value) is dict else None
        check_kind = by_kind.get(kind) if type(kind) is str else None
        return f" has no kind out of {', '.join(by_kind)}" if check_kind is None else check_kind(value)

    return check


def number_check(hint: type, least: float, most: float) -> Check:
    whole = hint is int

    def check(value: Any) -> str | None:
        if type(value) is int or (type(value) is float and (not whole or value.is_integer())):
            # NaN is not in any range.
            return None if least <= value <= most else f" is {_shown(value)}, not from {least:g} to {most:g}"
        return f" is {_kind(value)}, not a {'whole ' if whole else ''}number"

    return check


def _one_of(terms: Sequence[str]) -> Check:
    allowed = frozenset(terms)

    def check(value: Any) -> str | None:
        if type(value) is str and value in allowed:
            return None
        return f" is {_shown(value)}, none of {', '.join(terms)}"

    return check


def check_texts(value: Any) -> str | None:
    """Check a list of texts, such as the words of a command, of which there may be thousands."""
    try:
        if type(value) is list and "".join(value).isascii():
            return None
    except TypeError:
        pass  # not all of them are texts
    return list_check(check_text)(value)


def check_text(value: Any) -> str | None:
    if type(value) is not str:
        return f" is {_kind(value)}, not a text"
    if value.isascii():
        return None
    try:
        # U+DC80 to U+DCFF stand for bytes that are not UTF-8; other surrogates stand for nothing.
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return " has a lone surrogate, which is no text"
    return None


def _not_empty(value: Any) -> str | None:
    return check_text(value) if value else " is empty"


def _pattern(pattern: re.Pattern[str]) -> Check:
    match = pattern.match

    def check(value: Any) -> str | None:
        # `$` also matches before a newline at the end.
        if type(value) is str and match(value) and value[-1] != "\n":
            return None
        return f" is {_shown(value)}, which is not of the form {pattern.pattern}"

    return check


def _moment(pattern: re.Pattern[str]) -> Check:
    match, parse = pattern.match, datetime.fromisoformat

    def check(value: Any) -> str | None:
        try:
            # As `run` writes it: with these characters in these places, a text has only one meaning to `parse`.
            if len(value) == 24 and value[4:20:3] == "--T::." and value[23] == "Z" and "1900" <= value[:4] < "2200":
                parse(value[:23])
                return None
            if match(value) and value[-1] == "Z":
                parse(value[:19])
                return None
        except (ValueError, TypeError, KeyError):
            pass  # the 31st of February, or no text
        return f" is {_shown(value)}, not a date and time in UTC"

    return check


def _boolean(value: Any) -> str | None:
    return None if type(value) is bool else f" is {_kind(value)}, neither true nor false"


def _null(value: Any) -> str | None:
    return None if value is None else f" is {_kind(value)}, not null"


def check_any(value: Any, depth: int = 0) -> str | None:
    """Check any JSON value: it must be possible to render it again."""
    if type(value) is str:
        return check_text(value)
    if type(value) is float:
        return None if math.isfinite(value) else f" is {value}, not a finite number"
    if type(value) is int:
        return None if -LARGEST <= value <= LARGEST else " is a number that is too large"
    if depth > DEEPEST:
        return " is nested too deeply"
    if type(value) is dict:
        return next(
            filter(None, (check_text(name) or check_any(item, depth + 1) for name, item in value.items())), None
        )
    if type(value) is list:
        return next(filter(None, (check_any(item, depth + 1) for item in value)), None)
    return None


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "of an unknown kind")


def _name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() and len(name) < 80 else _shown(name)


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _kind(value)
    return quote(value).encode("ascii", "backslashreplace").decode()


_KINDS = {
    dict: "an object", list: "an array", str: "a text", int: "a number", float: "a number", bool: "true or false",
    type(None): "null",
}  # fmt: skip
_SIMPLE: dict[Any, Check] = {
    str: check_text,
    int: number_check(int, -LARGEST_STORED, LARGEST_STORED),
    bool: _boolean,
    type(None): _null,
    float: number_check(float, -LARGEST, LARGEST),
}
