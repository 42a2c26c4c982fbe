"""Parses times as people write them: a duration ago, a day, or a date and time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from jobmeter.errors import UsageError
from jobmeter.times import parse_moment
from jobmeter.units import parse_seconds

_YEAR_1, _YEAR_10000 = -62135596800.0, 253402300800.0
"""When these years begin, in seconds since 1970."""


def moment(text: str, now: float | None = None) -> float:
    """The time that `text` names, in seconds since 1970. Raises UsageError if it names none.

    It is a duration ago, a day, or an ISO 8601 time, which is local if it has no zone.
    """
    return checked_moment(_parse(text, time.time() if now is None else now), repr(text))


def checked_moment(seconds: float, name: str) -> float:
    """The same time, in seconds since 1970. Raises UsageError if no date of four digits for the year expresses it."""
    if not _YEAR_1 <= seconds < _YEAR_10000:
        example = "Write for example 2h, 3d, yesterday or 2026-01-31."
        raise UsageError(f"{name} is not within the years 1 to 9999. {example}")
    return seconds


def _parse(text: str, now: float) -> float:
    midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    word = text.strip().lower()
    if word in ("now", "today", "yesterday"):
        day = midnight - timedelta(days=word == "yesterday")
        return now if word == "now" else day.timestamp()
    try:
        return now - parse_seconds(word.removesuffix("ago"))
    except UsageError:
        pass  # not a duration: try a date
    try:
        return parse_moment(text).timestamp()
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time. Write for example 2h, 3d, yesterday, 2026-01-31 or 2026-01-31T12:00."
        ) from None
