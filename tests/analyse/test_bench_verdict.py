from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from jobmeter.analyse.bench import BENCH_MEASURES, BenchFigure, BenchRun
from jobmeter.analyse.bench_verdict import BenchVerdict, common_values, holm, judge
from tests.analyse.bench_runs import bench_runs

WALL, CPU, MEMORY = BENCH_MEASURES[:3]


def verdict(before: Sequence[float], after: Sequence[float], tolerance: float = 0.05) -> BenchVerdict:
    sides = [{"a": bench_runs(WALL.key, values)} for values in (before, after)]
    return judge(sides[0], sides[1], tolerance, [WALL])


def test_twice_as_much_is_a_regression() -> None:
    judgement = verdict([1.0, 1.01, 0.99, 1.0, 1.02, 0.98], [2.0, 2.01, 1.99, 2.0, 2.02, 1.98])
    assert ["a"] == [each.variant for each in judgement.regressions]


def test_less_is_none() -> None:
    assert [] == verdict([2.0, 2.01, 1.99, 2.0, 2.02, 1.98], [1.0, 1.01, 0.99, 1.0, 1.02, 0.98]).regressions


def test_what_is_certain_but_within_the_tolerance_is_none() -> None:
    before, after = [1.0 + 0.001 * n for n in range(8)], [1.04 + 0.001 * n for n in range(8)]
    assert [] == verdict(before, after).regressions
    assert 1 == len(verdict(before, after, tolerance=0.02).regressions)


def test_what_is_constant_and_larger_is_a_regression() -> None:
    assert 1 == len(verdict([100.0] * 6, [200.0] * 6).regressions)
    assert [] == verdict([100.0] * 6, [100.0] * 6).regressions


def test_noise_of_20_percent_is_called_a_regression_at_most_once_in_20_benchmarks() -> None:
    """Five variants with three figures each: without a correction it would be every third."""
    chance = random.Random(11)
    called = 0
    for _ in range(60):
        sides = [
            {
                f"v{variant}": [
                    BenchRun(
                        f"r{number}",
                        "completed",
                        0,
                        {m.key: BenchFigure(chance.lognormvariate(0.0, 0.2), "x") for m in (WALL, CPU, MEMORY)},
                    )
                    for number in range(6)
                ]
                for variant in range(5)
            }
            for _ in range(2)
        ]
        called += bool(judge(sides[0], sides[1], 0.0, [WALL, CPU, MEMORY]).regressions)
    assert called <= 60 * 0.1


def test_holm_s_correction_is_that_of_the_literature() -> None:
    assert [True, False, False, True] == holm([0.01, 0.04, 0.03, 0.005])
    assert [] == holm([])
    assert [True] == holm([0.05])


def test_a_variant_that_the_baseline_lacks_is_named() -> None:
    judgement = judge({"a": bench_runs(WALL.key, [1.0] * 6)}, {"b": bench_runs(WALL.key, [9.0] * 6)}, 0.05, [WALL])
    assert (["b"], []) == (judgement.missing, judgement.judged)


def test_too_few_runs_are_no_regression() -> None:
    assert [] == verdict([1.0, 1.0], [5.0, 5.0]).regressions


def test_figures_of_different_sources_are_compared_by_one_that_all_have() -> None:
    first = [BenchRun("r", "completed", 0, {MEMORY.key: BenchFigure(9.0, "peak", sources={"peak": 9.0, "held": 5.0})})]
    second = [BenchRun("r", "completed", 0, {MEMORY.key: BenchFigure(5.0, "held", sources={"held": 5.0})})]
    assert [[5.0], [5.0]] == common_values([first, second], MEMORY.key)


def test_without_a_common_source_nothing_is_compared() -> None:
    before, after = bench_runs(MEMORY.key, [1.0] * 6, "ps_rss"), bench_runs(MEMORY.key, [9.0] * 6, "cgroup_mem_peak")
    judgement = judge({"a": before}, {"a": after}, 0.05, [MEMORY, CPU])
    assert [] == judgement.regressions
    assert [
        "it is from cgroup_mem_peak and ps_rss, and no source has it in all runs",
        "not every run has it",
    ] == [each.why for each in judgement.not_compared]


@pytest.mark.parametrize("seed", range(3))
def test_a_real_increase_of_a_third_is_found_in_noise_of_5_percent(seed: int) -> None:
    chance = random.Random(seed)
    before, after = ([mean * chance.lognormvariate(0, 0.05) for _ in range(10)] for mean in (1.0, 1.33))
    assert 1 == len(verdict(before, after).regressions)
