"""Moments as records hold them."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from jobmeter.times import parse_moment, utc


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1769860800.25, "2026-01-31T12:00:00.250Z"),
        (1769860799.9996, "2026-01-31T12:00:00.000Z"),
        (-32788800000, "0930-12-19T00:00:00.000Z"),
        (-62135596800, "0001-01-01T00:00:00.000Z"),
    ],
)
def test_a_moment_is_written_in_utc_to_the_millisecond(timestamp: float, text: str) -> None:
    assert utc(timestamp) == text


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00.250Z", "2026-01-31T13:00:00.250+01:00", " 2026-01-31T12:00:00.250+00:00\n"]
)
def test_a_moment_is_read_in_any_zone(text: str) -> None:
    moment = datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=timezone.utc)
    assert (parse_moment(text), utc(parse_moment(text).timestamp())) == (moment, "2026-01-31T12:00:00.250Z")


def test_a_text_that_names_no_moment_is_refused() -> None:
    with pytest.raises(ValueError, match="yesterday"):
        parse_moment("yesterday")
