"""Moments as records hold them: ISO-8601 in UTC, to the millisecond."""

from __future__ import annotations

import functools
import time

from jobmeter.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def utc(timestamp: float) -> str:
    """The moment so many seconds after 1970, as records hold it."""
    seconds, milliseconds = divmod(round(timestamp * 1000), 1000)
    return f"{_to_the_second(seconds)}.{milliseconds:03d}Z"


@functools.lru_cache(maxsize=2)
def _to_the_second(seconds: int) -> str:
    """Many short blocks begin and end within one second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def parse_moment(text: str) -> datetime:
    """The moment that an ISO-8601 text names; without a zone it is local. ValueError when it names none."""
    # Every run needs `utc`, few this: importing datetime takes longer than formatting a thousand times.
    from datetime import datetime

    return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))  # Python 3.10 does not know Z
