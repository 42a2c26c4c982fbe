"""What is said of a name that does not exist."""

from __future__ import annotations

import pytest

from jobmeter.suggestion import nearest_name, suggest

FIELDS = ("memory_peak_bytes", "cpu_seconds", "name", "status")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("cpu_second", "cpu_seconds"),
        ("nmae", "name"),
        ("memory", "memory_peak_bytes"),  # its beginning, though most letters are missing
        ("seconds", "cpu_seconds"),  # a word of it
        ("peak_memory", "memory_peak_bytes"),  # its words, in another order
        ("gpu", None),
        ("", None),
        ("n" * 10_000, None),
    ],
)
def test_the_name_that_was_probably_meant(name: str, nearest: str | None) -> None:
    assert nearest_name(name, FIELDS) == nearest


def test_a_near_name_is_suggested_and_else_all_are_listed() -> None:
    assert suggest("nmae", FIELDS) == "Did you mean 'name'?"
    assert suggest("gpu", FIELDS) == "There are: memory_peak_bytes, cpu_seconds, name, status."
    assert suggest("gpu", FIELDS, "`jobmeter ls` lists them.") == "`jobmeter ls` lists them."
    assert suggest("gpu", []) == "There are none."


def test_a_long_list_and_a_long_name_are_cut_short() -> None:
    jobs = [f"job-{number}" for number in range(10_000)]
    assert suggest("x", jobs) == f"There are: {', '.join(jobs[:63])}, …."
    assert suggest("n" * 150, ["n" * 151]) == f"Did you mean '{'n' * 79}…'?"
