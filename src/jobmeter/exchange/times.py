"""Moments as records hold them (ISO-8601 in UTC) and as other tools write them."""

from __future__ import annotations

from datetime import datetime, timezone

from jobmeter.exchange.cells import BadCell

_LATEST = datetime(2200, 1, 1, tzinfo=timezone.utc).timestamp()


def utc(timestamp: float) -> str:
    """ISO-8601 in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(round(timestamp * 1000) / 1000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def timestamp(text: str, what: str) -> float:
    """Seconds since 1970 of an ISO-8601 moment; one without a zone is of this machine's (`TZ`)."""
    try:
        # Python 3.10 knows no Z.
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise BadCell(f"{what} {text!r} is not a date and time") from None
    return possible(moment.timestamp(), what)


def possible(seconds: float, what: str) -> float:
    """`seconds` since 1970, if a computer can have run then."""
    if not 0 < seconds < _LATEST:
        raise BadCell(f"{what} {seconds!r} is not a time between 1970 and 2200")
    return seconds
