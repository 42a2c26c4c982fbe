"""Parses values as other tools write them, strictly: a value that cannot be true is refused, never guessed."""

from __future__ import annotations

import math
import re

from jobmeter import units
from jobmeter.errors import UsageError
from jobmeter.times import parse_moment

MOST_BYTES = 2**60
MOST_SECONDS = 100 * 366 * 86400.0
MOST_COUNT = 1e18
MOST_PERCENT = 1e8
_YEAR_2200 = 7258118400.0  # seconds since 1970
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+(?::\d+){0,2})(\.\d+)?")
_ENERGY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([KMGTP]?)", re.IGNORECASE)
_DECIMAL = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


class BadCell(Exception):
    """A value that cannot be read or cannot be true; the text says which and why."""


def number(text: str, what: str, most: float = MOST_COUNT) -> float:
    """The number in `text`, from 0 to `most`. Raises BadCell if it is not one, as all functions here do."""
    if not _PLAIN.fullmatch(text.strip()):
        raise BadCell(f"{what} {text!r} is not a number")
    return checked(float(text), what, most, text)


def checked(value: object, what: str, most: float = MOST_COUNT, written: str | None = None) -> float:
    """`value` if it is a number from 0 to `most`. It is a value of JSON, or was computed from the text `written`."""
    shown = value if written is None else written
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadCell(f"{what} {shown!r} is not a number")
    # For floats only: `isfinite` converts to float, for which an int may be too large.
    if (isinstance(value, float) and not math.isfinite(value)) or value < 0:
        raise BadCell(f"{what} {shown!r} is not a number from 0 up")
    if value > most:
        raise BadCell(f"{what} {_short(shown)} is more than can be")
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def count(text: str, what: str) -> int:
    return round(number(text, what))


def amount(text: str, what: str) -> int:
    """Bytes: a plain number, or one with K, M, G, T (powers of 1024)."""
    try:
        return round(checked(units.parse_bytes(text), what, MOST_BYTES, text))
    except UsageError:
        raise BadCell(f"{what} {text!r} is not an amount of bytes") from None


def joules(text: str, what: str) -> int:
    """Joules as `sacct` writes them: there the letters are powers of 1000, but those of bytes are powers of 1024."""
    match = _ENERGY.fullmatch(text.strip())
    if match is None:
        raise BadCell(f"{what} {text!r} is not an amount of energy")
    return round(checked(float(match[1]) * _DECIMAL[match[2].upper()], what, MOST_COUNT, text))


def clock(text: str, what: str) -> float:
    """Seconds of `[days-]hours:minutes:seconds[.fraction]` or `minutes:seconds[.fraction]`."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        raise BadCell(f"{what} {text!r} is not a time like 1-02:03:04 or 02:03.500")
    days, parts, fraction = match[1], [int(part) for part in match[2].split(":")], match[3]
    if days is not None:
        # After days, the first part is the hours, however many parts there are.
        parts += [0] * (3 - len(parts))
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + part
    return checked(seconds + int(days or 0) * 86400 + float(fraction or 0), what, MOST_SECONDS, text)


def moment(text: str, what: str) -> float:
    """An ISO 8601 time in seconds since 1970; without a zone, it is in that of this machine (`TZ`)."""
    try:
        return checked_moment(parse_moment(text).timestamp(), what)
    except (ValueError, OverflowError):
        raise BadCell(f"{what} {text!r} is not a date and time") from None


def checked_moment(seconds: float, what: str) -> float:
    """`seconds` since 1970, if that is a plausible time: after 1970 and before 2200."""
    if not 0 < seconds < _YEAR_2200:
        raise BadCell(f"{what} {seconds!r} is not a time between 1970 and 2200")
    return seconds
