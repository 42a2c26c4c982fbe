"""Names shortened in the middle, so that they stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmeter.report.shortening import cell_width, distinct_width, shorten


@pytest.mark.parametrize(
    ("names", "width", "expected"),
    [
        (["train"], 8, ["train"]),
        (["train-lr0.001-seed12"], 18, ["train-lr0…1-seed12"]),
        (["a" * 30 + "1", "a" * 30 + "2"], 9, ["aaaa…aaa1", "aaaa…aaa2"]),
        # The beginning and the end are the same: what differs is in the middle.
        (["train-lr0.001-seed1", "train-lr0.002-seed1"], 13, ["tra…01-seed1", "tra…02-seed1"]),
        (["x" * 20 + "a" + "y" * 20, "x" * 20 + "b" + "y" * 20], 8, ["xx…xa…yy", "xx…xb…yy"]),
        (["数据处理流水线"], 8, ["数据…线"]),
    ],
)
def test_the_part_in_which_names_differ_is_shown(names: list[str], width: int, expected: list[str]) -> None:
    assert expected == list(shorten(names, width).values())


def test_names_of_a_sweep_of_thousands_stay_distinct_in_a_narrow_width() -> None:
    names = [f"train-model-large-lr{lr}-seed{seed:04}" for lr in range(10) for seed in range(500)]
    width = distinct_width(names, 8)
    assert width < 20
    assert len(names) == len(set(shorten(names, width).values()))


@given(st.lists(st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=30)), st.integers(3, 25))
def test_no_name_is_wider_than_its_column_and_short_ones_stay(names: list[str], width: int) -> None:
    shortened = shorten(names, width)
    assert all(cell_width(short) <= width for short in shortened.values())
    assert all(short == name for name, short in shortened.items() if cell_width(name) <= width)


@given(st.lists(st.text("ab-", min_size=1, max_size=20), unique=True, min_size=1), st.integers(3, 12))
def test_in_their_distinct_width_names_are_distinct(names: list[str], least: int) -> None:
    width = distinct_width(names, least)
    assert len(names) == len(set(shorten(names, width).values()))
