"""Times as people write them."""

from __future__ import annotations

from datetime import datetime

import pytest

from jobmeter.errors import UsageError
from jobmeter.moments import moment

NOW = datetime(2026, 3, 10, 15, 30).timestamp()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("2h", datetime(2026, 3, 10, 13, 30)),
        ("2h ago", datetime(2026, 3, 10, 13, 30)),
        ("1d", datetime(2026, 3, 9, 15, 30)),
        ("now", datetime(2026, 3, 10, 15, 30)),
        ("today", datetime(2026, 3, 10)),
        ("Yesterday", datetime(2026, 3, 9)),
        ("2026-01-31", datetime(2026, 1, 31)),
        ("2026-01-31T12:00", datetime(2026, 1, 31, 12)),
        ("2026-01-31 12:00:05", datetime(2026, 1, 31, 12, 0, 5)),
    ],
)
def test_times_are_read_as_meant(words: str, expected: datetime) -> None:
    assert expected.timestamp() == moment(words, NOW)


def test_a_zone_is_heeded() -> None:
    assert datetime.fromisoformat("2026-01-31T12:00:00+00:00").timestamp() == moment("2026-01-31T12:00:00Z", NOW)


@pytest.mark.parametrize("words", ["99999999999999999w", "800000d ago", "1" + "0" * 20])
def test_a_duration_that_reaches_beyond_the_first_year_is_refused(words: str) -> None:
    with pytest.raises(UsageError) as refused:
        moment(words, NOW)
    expected = f"{words!r} is not within the years 1 to 9999. Write for example 2h, 3d, yesterday or 2026-01-31."
    assert expected == str(refused.value)


@pytest.mark.parametrize("words", ["", "soon", "2026-13-01", "h", "-2h"])
def test_what_is_no_time_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        moment(words, NOW)
