"""Times as records have them: ISO 8601 in UTC, to the millisecond."""

from __future__ import annotations

import functools
import time

from jobmeter.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def utc(timestamp: float) -> str:
    """The text in records for a time in seconds since 1970: `2026-01-31T12:00:00.000Z`."""
    seconds, milliseconds = divmod(round(timestamp * 1000), 1000)
    return f"{_to_the_second(seconds)}.{milliseconds:03d}Z"


@functools.lru_cache(maxsize=2)
def _to_the_second(seconds: int) -> str:
    """The time without milliseconds. Cached, because many short blocks begin and end within one second."""
    # Not by strftime, whose %Y has fewer than four digits before the year 1000: then texts do not sort by time.
    return "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}".format(*time.gmtime(seconds)[:6])


def parse_moment(text: str) -> datetime:
    """The time that an ISO 8601 text names; without a zone it is local. Raises ValueError if it names none."""
    # Late: every run needs `utc`, few need this. Importing datetime takes longer than a thousand calls of `utc`.
    from datetime import datetime

    return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))  # Python 3.10 does not know Z
