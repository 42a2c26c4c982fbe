from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from jobmeter.analyse.bench import (
    BenchFigure,
    BenchRun,
    Scaling,
    counts_workers,
    interleaved,
    median_interval,
    outliers,
    run_from_json,
    scalings,
    spread_of,
)
from tests.analyse.bench_runs import bench_runs


@pytest.mark.parametrize(("variants", "rounds"), [(1, 5), (2, 10), (3, 9), (4, 10), (7, 3)])
def test_every_round_has_each_variant_once(variants: int, rounds: int) -> None:
    order = interleaved(variants, rounds)
    for number in range(rounds):
        assert set(range(variants)) == set(order[number * variants : (number + 1) * variants])


def test_each_variant_is_in_each_place_equally_often() -> None:
    order = interleaved(3, 6)
    for place in range(3):
        assert {0: 2, 1: 2, 2: 2} == Counter(order[place::3])


def test_no_variant_always_follows_the_same_one() -> None:
    order = interleaved(3, 6)
    before = {variant: {a for a, b in itertools.pairwise(order) if b == variant != a} for variant in range(3)}
    assert {0: {1, 2}, 1: {0, 2}, 2: {0, 1}} == before


def test_two_variants_take_turns_in_going_first() -> None:
    assert [0, 1, 1, 0, 0, 1, 1, 0] == interleaved(2, 4)


def test_the_statistics_of_known_values() -> None:
    spread = spread_of(bench_runs("wall_seconds", [5.0, 1.0, 3.0, 2.0, 4.0, 6.0, 7.0]), "wall_seconds")
    assert spread is not None
    assert (7, 4.0, 4.0, 1.0, 7.0) == (spread.runs, spread.median, spread.mean, spread.least, spread.most)
    assert (2.5, 5.5, 3.0) == (spread.low_quartile, spread.high_quartile, spread.width)
    assert (1.0, 7.0) == spread.interval
    assert spread.deviation == pytest.approx(2.1602, abs=1e-4)
    assert spread_of(bench_runs("wall_seconds", [1.0]), "cpu_seconds") is None


@pytest.mark.parametrize(
    ("count", "interval"), [(1, None), (5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15))]
)
def test_the_interval_of_the_median_is_that_of_the_tables(count: int, interval: tuple[int, int] | None) -> None:
    """As in Conover, Practical Nonparametric Statistics: ranks for 95 % or more."""
    assert interval == median_interval([float(number) for number in range(1, count + 1)])


def test_the_interval_holds_the_true_median_in_95_of_100_samples() -> None:
    chance = random.Random(7)
    held = 0
    for _ in range(1000):
        interval = median_interval(sorted(chance.expovariate(1.0) for _ in range(10)))
        assert interval is not None
        held += interval[0] <= 0.6931 <= interval[1]
    assert 950 <= held <= 995


def test_one_slow_run_is_an_outlier_and_ordinary_noise_is_none() -> None:
    assert [3] == outliers([1.0, 1.01, 0.99, 5.0, 1.02, 1.0])
    assert [] == outliers([1.0, 1.2, 0.9, 1.1, 0.8, 1.15])
    assert [] == outliers([1.0, 5.0])


def test_what_is_constant_but_for_a_page_has_no_outliers() -> None:
    assert [] == outliers([4096000.0] * 9 + [4100096.0])
    assert [9] == outliers([4096000.0] * 9 + [8192000.0])


def walls(*medians: float) -> list[object]:
    return [spread_of(bench_runs("wall_seconds", [median]), "wall_seconds") for median in medians]


def test_speed_up_is_against_the_fewest_workers_and_efficiency_is_per_worker() -> None:
    results = scalings([{"n": "4"}, {"n": "1"}, {"n": "2"}], walls(3.0, 8.0, 4.0), "n")  # type: ignore[arg-type]
    assert [Scaling(8 / 3, 2 / 3), Scaling(1.0, 1.0), Scaling(2.0, 1.0)] == results


def test_variants_that_differ_in_more_than_workers_have_references_of_their_own() -> None:
    parameters = [{"n": "2", "size": "s"}, {"n": "4", "size": "s"}, {"n": "2", "size": "l"}, {"n": "4", "size": "l"}]
    results = scalings(parameters, walls(1.0, 0.5, 10.0, 10.0), "n")  # type: ignore[arg-type]
    assert [Scaling(1.0, 1.0), Scaling(2.0, 1.0), Scaling(1.0, 1.0), Scaling(1.0, 0.5)] == results


def test_without_workers_the_first_is_the_reference() -> None:
    assert [Scaling(1.0, None), Scaling(4.0, None)] == scalings([{}, {}], walls(2.0, 0.5), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [(["1", "2", "4"], True), (["1"], False), (["0", "1"], False), (["a", "b"], False), (["0.5", "1"], False)],
)
def test_which_parameters_count_workers(values: list[str], expected: bool) -> None:
    assert expected == counts_workers(values)


def test_a_run_survives_json() -> None:
    figures = {
        "wall_seconds": BenchFigure(1.5, "clock"),
        "memory_peak_bytes": BenchFigure(7.0, "a", True, {"a": 7.0, "b": 6.0}),
    }
    run = BenchRun("r1", "failed", 3, figures)
    assert run == run_from_json(run.as_json())
