"""Moments as people write them: a time ago, a day, or a time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from jobmeter.errors import UsageError
from jobmeter.times import parse_moment
from jobmeter.units import parse_seconds


def moment(text: str, now: float | None = None) -> float:
    """Seconds since 1970 of what people write: a time ago, a day, or an ISO time, local where it names no zone."""
    now = time.time() if now is None else now
    midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    word = text.strip().lower()
    if word in ("now", "today", "yesterday"):
        day = midnight - timedelta(days=word == "yesterday")
        return now if word == "now" else day.timestamp()
    try:
        return now - parse_seconds(word.removesuffix("ago"))
    except UsageError:
        pass  # no duration: then a date
    try:
        return parse_moment(text).timestamp()
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time. Write for example 2h, 3d, yesterday, 2026-01-31 or 2026-01-31T12:00."
        ) from None
