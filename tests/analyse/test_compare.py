"""What changed, in numbers and in words."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.compare import Difference, compare, in_words


def runs(key: str, *values: float) -> list[dict[str, Any]]:
    return [{key: value} for value in values]


def only(differences: list[Difference]) -> Difference:
    assert 1 == len(differences)
    return differences[0]


def test_a_regression_is_reported_in_words() -> None:
    before = runs("memory_peak_bytes", 100, 101, 99, 100, 102, 98, 100, 100)
    after = runs("memory_peak_bytes", 131, 132, 130, 131, 133, 129, 131, 131)
    difference = only(compare(before, after))
    assert "regression" == difference.verdict
    assert pytest.approx(1.31) == difference.ratio
    assert "memory_peak rose by 31 % (95 % interval 30 to 32 %, p < 0.001): a regression" == in_words(difference)


def test_an_improvement_is_reported_as_a_fall() -> None:
    difference = only(compare(runs("wall_seconds", 10, 10.2, 9.8, 10.1), runs("wall_seconds", 8, 8.1, 7.9, 8)))
    assert "improvement" == difference.verdict
    assert in_words(difference).startswith("wall fell by 20 % (95 % interval 1")
    assert in_words(difference).endswith("p = 0.029): an improvement")


def test_noise_is_no_difference() -> None:
    difference = only(compare(runs("cpu_seconds", 10, 14, 9, 12, 11), runs("cpu_seconds", 11, 13, 10, 12, 12)))
    assert "none" == difference.verdict
    assert in_words(difference).startswith("cpu: no significant difference (+3.6 %, 95 % interval -")


def test_one_run_each_gives_the_difference_and_a_note_that_it_may_be_chance() -> None:
    difference = only(compare(runs("memory_peak_bytes", 100), runs("memory_peak_bytes", 131)))
    assert ("untested", 31, None) == (difference.verdict, difference.difference, difference.p)
    assert "memory_peak rose by 31 % (one run each: it may be chance)" == in_words(difference)


def test_three_runs_each_are_too_few_and_it_is_said_how_many_are_enough() -> None:
    difference = only(compare(runs("wall_seconds", 1, 1, 1), runs("wall_seconds", 2, 2, 2)))
    assert "wall rose by 100 % (3 and 3 runs are too few to rule out chance; use 4 of each or more)" == in_words(
        difference
    )


def test_a_real_change_below_the_threshold_is_small() -> None:
    before = runs("wall_seconds", 100, 100.1, 99.9, 100, 100.2)
    after = runs("wall_seconds", 101, 101.1, 100.9, 101, 101.2)
    assert "small" == only(compare(before, after)).verdict
    assert "regression" == only(compare(before, after, threshold=0.001)).verdict


def test_more_processes_are_neither_better_nor_worse() -> None:
    difference = only(compare(runs("processes_peak", *[2] * 6), runs("processes_peak", *[4] * 6)))
    assert "change" == difference.verdict
    assert "processes_peak rose by 100 % (95 % interval 100 to 100 %, p = 0.0022)" == in_words(difference)


def test_from_nothing_there_is_a_difference_and_no_ratio() -> None:
    difference = only(compare(runs("write_bytes", *[0] * 5), runs("write_bytes", *[2**20] * 5)))
    assert (None, "regression") == (difference.ratio, difference.verdict)
    assert "write rose by 1 MiB (p = 0.0079): a regression" == in_words(difference)
    assert "ratio" not in difference.as_json()


def test_a_figure_that_only_one_side_has_is_not_compared() -> None:
    assert [] == compare(runs("read_bytes", 1), runs("write_bytes", 1))


def test_nothing_written_by_either_is_the_same() -> None:
    assert "write: the same" == in_words(only(compare(runs("write_bytes", 0, 0), runs("write_bytes", 0, 0))))
