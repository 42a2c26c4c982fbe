from __future__ import annotations

import random

import pytest

from jobmeter.collectors.contract import Column
from jobmeter.meter.aggregate import (
    CategoryAggregate,
    CounterAggregate,
    GaugeAggregate,
    LabelAggregate,
    combine,
    new_aggregate,
    tidy,
)
from jobmeter.model import Across, Gauge, Kind, Measurement, Number, Quality, Value


def measurement(across: Across) -> Measurement:
    return Measurement("x", "bytes", Kind.GAUGE, across, Quality.SAMPLED, "An x.")


@pytest.mark.parametrize(
    ("across", "column", "expected"),
    [
        (Across.SUM, [1, 2, 3], 6),
        (Across.MAX, [1, 3, 2], 3),
        (Across.LAST, [1, 3, 2], 2),
        (Across.LAST, ["a", "b"], "b"),
        (Across.TALLY, ["S", "R", "S"], {"S": 2, "R": 1}),
        (Across.SUM, [0], 0),
    ],
)
def test_siblings_combine_as_their_measurement_says(across: Across, column: Column, expected: Value) -> None:
    assert expected == combine(measurement(across), column)


@pytest.mark.parametrize("across", list(Across))
def test_no_processes_combine_to_nothing_and_not_to_zero(across: Across) -> None:
    assert None is combine(measurement(across), [])


def gauge(*levels: tuple[Number, float]) -> GaugeAggregate:
    summary = GaugeAggregate()
    for value, seconds in levels:
        summary.add(value, seconds)
    return summary


def test_a_mean_weighs_each_level_by_its_time() -> None:
    assert {"peak": 500, "mean": 140, "min": 100, "p95": 500} == gauge((500, 1.0), (100, 9.0)).summary("bytes")


def test_a_level_of_which_no_time_is_known_is_its_own_mean() -> None:
    assert {"peak": 7, "mean": 7, "min": 7, "p95": 7} == gauge((7, 0.0)).summary("count")


def test_a_level_that_was_only_seen_counts_for_peak_and_minimum_and_not_for_the_mean() -> None:
    summary = gauge((900, 0.0), (100, 9.0), (3, 0.0))
    assert (900, 100, 3) == (summary.peak, summary.mean, summary.minimum)
    assert 100 == pytest.approx(summary.p95, rel=0.01)


def test_a_mark_has_a_peak_and_no_mean() -> None:
    mark = new_aggregate(measurement(Across.LAST)._replace(gauge=Gauge.MARK))
    for value in (5, 9, 7):
        mark.add(value, 1.0)  # type: ignore[arg-type]
    assert ({"peak": 9}, 9) == (mark.summary("bytes"), mark.cell("bytes"))


def test_a_short_peak_is_the_peak_and_not_the_95th_percentile() -> None:
    summary = gauge((1000, 0.04), (100, 0.96))
    assert 1000 == summary.peak
    assert 100 == pytest.approx(summary.p95, rel=0.01)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6, 1e12])
def test_the_95th_percentile_is_within_1_percent_of_the_true_one(scale: float) -> None:
    numbers = random.Random(42)
    values = [numbers.lognormvariate(0, 2) * scale for _ in range(5000)]
    true = sorted(values)[round(0.95 * len(values)) - 1]
    assert true == pytest.approx(gauge(*((value, 1.0) for value in values)).p95, rel=0.01)


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (-4.5, -4.5)])
def test_a_level_of_zero_or_below_has_a_95th_percentile_no_higher_than_its_peak(value: float, expected: float) -> None:
    summary = gauge((value, 1.0), (value, 1.0))
    assert (expected, expected, expected) == (summary.p95, summary.peak, summary.mean)


def test_a_gauge_merged_from_windows_is_the_gauge_of_the_run() -> None:
    levels: list[tuple[Number, float]] = [(n * n % 97 + 1, 0.5 + n % 3) for n in range(60)]
    merged = gauge(*levels[:20])
    merged.merge(gauge(*levels[20:45]))
    merged.merge(gauge(*levels[45:]))
    assert gauge(*levels).summary("percent") == merged.summary("percent")


@pytest.mark.parametrize(
    ("levels", "expected"),
    [([(5, 1.0), (5, 3.0)], 5), ([(8, 1.0), (4, 1.0)], [8, 6]), ([(3, 0.1)] * 7, 3)],
)
def test_a_cell_is_one_number_where_the_level_did_not_move(
    levels: list[tuple[Number, float]], expected: object
) -> None:
    assert expected == gauge(*levels).cell("bytes")


def test_a_counter_is_what_it_grew_by() -> None:
    counter = CounterAggregate(100)
    for value in (110, 150):
        counter.add(value, 1.0)
    assert ({"total": 50}, 50, 150) == (counter.summary("bytes"), counter.cell("bytes"), counter.last)


def test_a_falling_counter_yields_nothing_and_never_a_negative() -> None:
    counter = CounterAggregate(100)
    counter.add(40, 1.0)
    fallen = counter.cell("bytes")
    counter.add(105, 1.0)
    assert (0, 5) == (fallen, counter.cell("bytes"))


def test_counters_of_following_windows_merge_without_loss() -> None:
    run = CounterAggregate()
    run.add(30, 1.0)
    window = CounterAggregate(run.last)
    window.add(70, 1.0)
    run.merge(window)
    assert (40, {"total": 70}) == (window.cell("bytes"), run.summary("bytes"))


def test_a_tally_becomes_the_share_of_each_category() -> None:
    states = CategoryAggregate()
    states.add({"S": 2, "R": 1}, 1.0)
    states.add({"S": 1}, 1.0)
    later = CategoryAggregate()
    later.add({"D": 4}, 1.0)
    before = states.summary("text")
    states.merge(later)
    assert {"share": {"S": 0.75, "R": 0.25}} == before
    assert {"share": {"S": 0.375, "R": 0.125, "D": 0.5}} == states.summary("text")


def test_a_label_is_the_last_and_which_there_were() -> None:
    label = LabelAggregate()
    for text in ("a", "b", "a"):
        label.add(text, 1.0)
    later = LabelAggregate()
    for text in ("d", "c", "d"):
        later.add(text, 1.0)
    label.merge(later)
    assert {"last": "d", "distinct": ["a", "b", "d", "c"]} == label.summary("text")


def test_labels_are_bounded_and_the_last_is_still_the_last() -> None:
    label = LabelAggregate()
    for number in range(1000):
        label.add(f"step {number}", 1.0)
    summary = label.summary("text")
    assert ("step 999", 20, "step 0") == (summary["last"], len(summary["distinct"]), summary["distinct"][0])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Kind.GAUGE, GaugeAggregate),
        (Kind.COUNTER, CounterAggregate),
        (Kind.LABEL, LabelAggregate),
        (Kind.CATEGORY, CategoryAggregate),
    ],
)
def test_the_kind_of_a_measurement_says_how_it_is_summed_up(kind: Kind, expected: type) -> None:
    assert expected is type(new_aggregate(measurement(Across.LAST)._replace(kind=kind)))


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (10.6, "bytes", 11),
        (3.0, "count", 3),
        (3.256, "count", 3.26),
        (99.99999, "percent", 100.0),
        (1.23456789, "seconds", 1.234568),
    ],
)
def test_a_number_has_no_more_digits_than_meaning(value: float, unit: str, expected: Number) -> None:
    assert (expected, type(expected)) == (tidy(value, unit), type(tidy(value, unit)))
