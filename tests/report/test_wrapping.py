"""Lines broken between words."""

from __future__ import annotations

import pytest

from jobmeter.report.wrapping import wrap


@pytest.mark.parametrize(
    ("line", "width", "expected"),
    [
        ("as it is", None, ["as it is"]),
        ("as it is", 8, ["as it is"]),
        ("  one two three", 10, ["  one two", "    three"]),
        ("  needed up to 133 MiB of it", 20, ["  needed up to", "    133 MiB of it"]),  # a number and its unit
        ("rose (p = 0.0079): so", 12, ["rose", "  (p = 0.0079):", "  so"]),
        ("in /a/path/that/is/long", 10, ["in", "  /a/path/that/is/long"]),  # it can be copied
        ("  CPU 2 s [at least, proc]", 16, ["  CPU 2 s", "    [at least, proc]"]),
        ("one two", 0, ["one two"]),  # a terminal that does not know its width
    ],
)
def test_a_line_is_broken_between_words(line: str, width: int | None, expected: list[str]) -> None:
    assert expected == wrap(line, width, 2)
