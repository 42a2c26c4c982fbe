from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.study import Trial, early_stops, rank, study_of

GIB = 1 << 30


def a_trial(name: str, value: float | None = None, *, status: str = "completed", **fields: Any) -> Trial:
    return Trial(name, name, status, {}, value=value, **fields)


def test_totals_add_up_what_trials_used() -> None:
    trials = [
        a_trial("a", cpu_seconds=7200, wall_seconds=3600, memory_mean_bytes=2 * GIB, gpus=2),
        a_trial("b", cpu_seconds=1800, wall_seconds=1800, memory_mean_bytes=GIB),
    ]
    assert (2, 1.5, 2.5, 2.5, 2.0) == study_of(trials, maximize=False, costliest=1).total


def test_failures_are_counted_by_how_they_ended_with_what_they_cost() -> None:
    trials = [
        a_trial("a", cpu_seconds=3600), a_trial("b", status="oom", cpu_seconds=7200),
        a_trial("c", status="oom", cpu_seconds=3600), a_trial("d", status="timeout", cpu_seconds=1800),
    ]  # fmt: skip
    study = study_of(trials, maximize=False, costliest=2)
    assert {"oom": (2, 3.0), "timeout": (1, 0.5)} == {
        status: (each.trials, each.core_hours) for status, each in study.failures.items()
    }
    assert ["b", "a"] == [trial.name for trial in study.costliest]
    assert (1, 1.0) == (study.completed.trials, study.completed.core_hours)


def test_the_best_is_first_and_less_is_better_unless_said_otherwise() -> None:
    trials = [a_trial("a", 0.3), a_trial("b", 0.1), a_trial("c", 0.2)]
    assert ["b", "c", "a"] == [each.trial.name for each in rank(trials, maximize=False)]
    assert ["a", "c", "b"] == [each.trial.name for each in rank(trials, maximize=True)]


def test_no_trial_is_both_better_and_cheaper_than_an_efficient_one() -> None:
    costs = {"a": (0.1, 9), "b": (0.2, 4), "c": (0.25, 5), "d": (0.3, 1), "e": (0.4, 1)}
    trials = [a_trial(name, value, cpu_seconds=hours * 3600) for name, (value, hours) in costs.items()]
    ranked = rank(trials, maximize=False)
    assert ["a", "b", "d"] == [each.trial.name for each in ranked if each.is_efficient]


def test_the_gain_is_against_the_median_for_each_core_hour() -> None:
    trials = [a_trial("a", 1.0, cpu_seconds=7200), a_trial("b", 0.8, cpu_seconds=3600), a_trial("c", 0.2)]
    gains = {each.trial.name: each.gain_per_core_hour for each in rank(trials, maximize=True)}
    assert {"a": pytest.approx(0.1), "b": None, "c": None} == gains


def a_curve(name: str, *values: float) -> Trial:
    """One value every 10 s, less is better; an hour of CPU."""
    points = tuple((10.0 * place, value) for place, value in enumerate(values, start=1))
    return a_trial(name, values[-1], points=points, wall_seconds=10.0 * len(values), cpu_seconds=3600)


def test_a_trial_that_was_worse_than_most_and_stayed_so_could_have_been_stopped() -> None:
    good = [a_curve(f"good{number}", 5, 3, 2, 1.0 + number / 10) for number in range(4)]
    bad, late = a_curve("bad", 9, 9, 9, 9), a_curve("late", 9, 8, 2, 0.5)
    ranked = [each.trial for each in rank([*good, bad, late], maximize=False)]
    stops = {stop.trial.name: (stop.seconds, stop.saved_core_hours) for stop in early_stops(ranked, maximize=False)}
    assert {"bad": (10, 0.75)} == stops


def test_the_best_are_never_said_to_be_worth_stopping() -> None:
    """A trial that began badly and ended best shows that stopping by the first values would have been wrong."""
    trials = [a_curve("slow starter", 9, 9, 9, 0.1), *(a_curve(f"t{number}", 5, 4, 3, 2) for number in range(5))]
    ranked = [each.trial for each in rank(trials, maximize=False)]
    assert [] == early_stops(ranked, maximize=False)


def test_without_curves_nothing_is_said_of_stopping() -> None:
    assert [] == early_stops([a_trial(str(number), number) for number in range(9)], maximize=False)


def test_an_empty_study_has_no_ranking() -> None:
    study = study_of([], maximize=False, costliest=3)
    assert (0, [], []) == (study.total.trials, study.ranking, study.costliest)
