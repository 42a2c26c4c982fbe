"""A study of many trials: what each trial cost and how good it was. Pure functions: trials in, figures out."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.model import Status

_GIB, _HOUR = 1 << 30, 3600
_ENOUGH_TRIALS = 3
"""Other trials that must have reported a value by then, before a trial can be called worse than most."""
_SOME_TIME = 0.1
"""A trial is not stopped before this share of the median wall time."""


class Trial(NamedTuple):
    """One run of a study. None: not measured, or not requested."""

    id: str
    name: str
    status: str
    labels: dict[str, str]
    wall_seconds: float = 0.0
    cpu_seconds: float | None = None
    memory_peak_bytes: float | None = None
    memory_mean_bytes: float | None = None
    gpus: float | None = None
    value: float | None = None  # the final value of the metric
    points: tuple[tuple[float, float], ...] = ()  # (seconds since its start, value of the metric)

    @property
    def core_hours(self) -> float:
        return (self.cpu_seconds or 0.0) / _HOUR

    @property
    def gb_hours(self) -> float:
        return (self.memory_mean_bytes or 0.0) / _GIB * self.wall_seconds / _HOUR

    @property
    def gpu_hours(self) -> float:
        return (self.gpus or 0.0) * self.wall_seconds / _HOUR

    @property
    def is_completed(self) -> bool:
        return bool(self.status == Status.COMPLETED.value)


class Totals(NamedTuple):
    """What several trials cost together."""

    trials: int
    wall_hours: float
    core_hours: float
    gb_hours: float
    gpu_hours: float


class Ranked(NamedTuple):
    """A trial on the leaderboard."""

    trial: Trial
    gain_per_core_hour: float | None  # improvement over the median trial per core-hour; None: it is not better
    is_efficient: bool  # every trial that ranks above it cost more


class EarlyStop(NamedTuple):
    """A trial that was worse than most of the others after `seconds`, and did not end in the better half."""

    trial: Trial
    seconds: float
    saved_core_hours: float


class Study(NamedTuple):
    total: Totals
    completed: Totals
    failures: dict[str, Totals]  # status → the trials that ended with it; without completed ones
    costliest: list[Trial]
    ranking: list[Ranked]  # best first; of trials that completed and have the metric
    early_stops: list[EarlyStop]


def study_of(trials: Sequence[Trial], *, maximize: bool, costliest: int) -> Study:
    """Analyse the trials of a study; all of them must have ended."""
    failures: dict[str, list[Trial]] = {}
    for trial in trials:
        if not trial.is_completed:
            failures.setdefault(trial.status, []).append(trial)
    measured = [trial for trial in trials if trial.is_completed and trial.value is not None]
    ranking = rank(measured, maximize=maximize)
    return Study(
        total=totals(trials),
        completed=totals([trial for trial in trials if trial.is_completed]),
        failures={status: totals(group) for status, group in sorted(failures.items())},
        costliest=sorted(trials, key=lambda trial: (-trial.core_hours, trial.name))[:costliest],
        ranking=ranking,
        early_stops=early_stops([each.trial for each in ranking], maximize=maximize),
    )


def totals(trials: Sequence[Trial]) -> Totals:
    return Totals(
        len(trials),
        sum(trial.wall_seconds for trial in trials) / _HOUR,
        sum(trial.core_hours for trial in trials),
        sum(trial.gb_hours for trial in trials),
        sum(trial.gpu_hours for trial in trials),
    )


def rank(trials: Sequence[Trial], *, maximize: bool) -> list[Ranked]:
    """Rank trials: best first, equal ones by cost. All must have a value."""
    if not trials:
        return []
    sign = 1.0 if maximize else -1.0
    ordered = sorted(trials, key=lambda trial: (-sign * _value(trial), trial.core_hours, trial.name))
    median = statistics.median(_value(trial) for trial in ordered)
    ranked, cheapest = [], float("inf")
    for trial in ordered:
        gain = sign * (_value(trial) - median)
        per_hour = gain / trial.core_hours if gain > 0 and trial.core_hours else None
        ranked.append(Ranked(trial, per_hour, trial.core_hours < cheapest))
        cheapest = min(cheapest, trial.core_hours)
    return ranked


def early_stops(ranked: Sequence[Trial], *, maximize: bool) -> list[EarlyStop]:
    """The trials that the median rule would have stopped, best first; none of them is in the better half at the end.

    A trial is stopped at the first time when its best value so far is worse than the median of the others' best so far.
    """
    curves = {trial.id: _best_so_far(trial, maximize=maximize) for trial in ranked if len(trial.points) > 1}
    if not curves:
        return []
    begin = _SOME_TIME * statistics.median(trial.wall_seconds for trial in ranked)
    better_half = {trial.id for trial in ranked[: -(-len(ranked) // 2)]}
    stops = []
    for trial in ranked:
        if trial.id in curves and trial.id not in better_half:
            moment = _stopped_at(trial, curves, begin, maximize=maximize)
            if moment is not None and moment < trial.wall_seconds:
                saved = trial.core_hours * (1 - moment / trial.wall_seconds)
                stops.append(EarlyStop(trial, moment, saved))
    return stops


class _Curve(NamedTuple):
    seconds: list[float]
    best: list[float]  # the best of all values up to that time

    def at(self, moment: float) -> float | None:
        place = bisect_right(self.seconds, moment)
        return self.best[place - 1] if place else None


def _best_so_far(trial: Trial, *, maximize: bool) -> _Curve:
    better = max if maximize else min
    best: list[float] = []
    for _, value in trial.points:
        best.append(better(best[-1], value) if best else value)
    return _Curve([seconds for seconds, _ in trial.points], best)


def _stopped_at(trial: Trial, curves: dict[str, _Curve], begin: float, *, maximize: bool) -> float | None:
    mine = curves[trial.id]
    for seconds, best in zip(*mine):
        if seconds < begin:
            continue
        others = [curve.at(seconds) for run, curve in curves.items() if run != trial.id]
        values = [value for value in others if value is not None]
        if len(values) >= _ENOUGH_TRIALS:
            median = statistics.median(values)
            if best < median if maximize else best > median:
                return seconds
    return None


def _value(trial: Trial) -> float:
    assert trial.value is not None, "only trials with the metric are ranked"
    return trial.value
