"""An estimate of what the next run needs of one resource, from observations of earlier runs of the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jobmeter.analyse.prediction import Need, Prediction, predict, predict_across, weighted_quantile

COMPLETE, LIMIT, CUT = "complete", "limit", "cut"
"""The run came to its end; it met a limit that it requested; it ended early for another reason."""
MOST_TIMES = {2: 1.5, 3: 2.0, 4: 3.0}
"""By the number of complete runs, how many times the largest need is advised at most: for so few, the spread is
hardly known, and a safe bound would be unreasonably large."""
MOST_TIMES_EVER = 4.0
BEYOND_LIMIT = 1.5
"""Times the limit that a run met, where no run is known to have completed with more."""
BEYOND_LIMIT_UNKNOWN = 2.0
"""The same where no run ever completed."""
_LEAST_COMPLETED = 5
"""Complete runs from which on their spread also says something about the run that met a limit above them."""


class Observation(NamedTuple):
    """What one run needed, as far as it was measured."""

    value: float  # above 0
    ending: str = COMPLETE  # of the others the value is a lower bound of the need
    room: float = 1.0  # what to multiply it with, for what the figure may have missed
    name: str = ""  # of the job, where there are several

    @property
    def need(self) -> float:
        return self.value * self.room


class Margin(NamedTuple):
    """How far the estimate must be above the observations."""

    level: float  # the chance with which the next run must stay below
    least_deviation: float
    single: float  # what the need of the only run is multiplied with
    cover_peaks: bool  # never below what a run needed


class Estimate(NamedTuple):
    value: float
    most: float  # the largest that a run needed or met
    usual: float  # what half of the runs stay below
    prediction: Prediction | None  # None: how runs differ is not known
    reason: str


def estimate(observations: Sequence[Observation], margin: Margin, text: Callable[[float], str]) -> Estimate:
    """The estimate for the next run, from observations, newest first. At least one must be given.

    `text` writes an amount for people.
    """
    complete = [one for one in observations if one.ending == COMPLETE]
    if not complete:
        return _from_no_success(observations, text)
    prediction = _prediction(observations, margin)
    single = max(complete, key=lambda one: one.need)
    if prediction is None or _differs_much(prediction, single, complete, margin):
        prediction = None
        value, reason = _from_single(single, margin, text, is_largest=len(complete) > 1)
    else:
        value, reason = _from_many(complete, prediction, margin, text)
    peak = max(one.value for one in observations)
    if margin.cover_peaks and value < (floor := max(one.need for one in observations if one.ending != LIMIT)):
        value = floor
        reason = f"not below the largest seen, {text(peak)}"
    met = _largest_met(observations, margin)
    if met >= max(one.value for one in complete):
        prediction = prediction if len(complete) >= _LEAST_COMPLETED else None
        if met * BEYOND_LIMIT > value:
            value = met * BEYOND_LIMIT
            reason = (
                f"{text(met)} was not enough and no run is known to have used more: "
                f"at least {BEYOND_LIMIT:g} times that"
            )
    return Estimate(value, peak, weighted_quantile([one.value for one in complete], 0.5), prediction, reason)


def _prediction(observations: Sequence[Observation], margin: Margin) -> Prediction | None:
    """From how runs of the same job differ or, if that is more precise, from how all of them do; None from one run."""
    needs = [Need(one.need, one.ending == COMPLETE, one.name) for one in observations]
    within = predict(needs, margin.least_deviation)
    if len({one.name for one in observations if one.ending == COMPLETE}) < 2:
        return within
    across = predict_across(needs, margin.least_deviation)
    predictions = [each for each in (within, across) if each is not None]
    return min(predictions, key=lambda each: each.bound(margin.level))


def _differs_much(
    prediction: Prediction, largest: Observation, complete: Sequence[Observation], margin: Margin
) -> bool:
    """Whether no job ran twice, and jobs differ by more than the runs of one are taken to."""
    return _ran_once(complete) and prediction.bound(margin.level) > largest.need * margin.single


def _ran_once(complete: Sequence[Observation]) -> bool:
    """Whether each of several jobs did."""
    return len({one.name for one in complete}) == len(complete)


def _largest_met(observations: Sequence[Observation], margin: Margin) -> float:
    """The largest limit that a run met, 0 without any; where peaks need not be covered, not one that was met rarely."""
    limits = [one.value if one.ending == LIMIT else 0.0 for one in observations]
    return max(limits) if margin.cover_peaks else weighted_quantile(limits, margin.level)


def _from_no_success(observations: Sequence[Observation], text: Callable[[float], str]) -> Estimate:
    most = max(observations)
    met = max((one.value for one in observations if one.ending == LIMIT), default=0.0)
    most_text = f"{text(met)} was not enough" if met >= most.value else f"one used {text(most.value)} before it failed"
    value = most.need * BEYOND_LIMIT_UNKNOWN
    reason = f"no run has completed, {most_text}: {BEYOND_LIMIT_UNKNOWN:g} times that is a guess"
    return Estimate(value, most.value, most.value, None, reason)


def _from_single(
    one: Observation, margin: Margin, text: Callable[[float], str], *, is_largest: bool
) -> tuple[float, str]:
    source = (
        f"the largest job, {one.name}, needed {text(one.value)} once"
        if is_largest
        else f"one run needed {text(one.value)}"
    )
    return one.need * margin.single, f"{source}; how runs differ is not known, so {margin.single:g} times that"


def _from_many(
    complete: Sequence[Observation], prediction: Prediction, margin: Margin, text: Callable[[float], str]
) -> tuple[float, str]:
    jobs = len({one.name for one in complete})
    mine = [one for one in complete if one.name == prediction.name]
    bound = prediction.bound(margin.level)
    if not margin.cover_peaks:
        # Runs may be of two sorts, which no single distribution describes: those that were observed must fit.
        bound = max(bound, weighted_quantile([one.need for one in mine], margin.level))
    count = round(prediction.freedom) + 1  # of the runs that show how runs differ
    most = max(one.value for one in complete)
    times = MOST_TIMES.get(count, MOST_TIMES_EVER)
    cap = times * max(one.need for one in complete)
    runs = f"{len(complete)} runs needed up to {text(most)}"
    if bound > cap and not _ran_once(complete):
        why = "of so few the spread is hardly known" if count in MOST_TIMES else "they differ too much to be sure"
        return cap, f"{runs}; {why}, so {times:g} times that"
    whose = f" of its largest job, {prediction.name}," if jobs > 1 else ""
    return bound, f"{runs}; {_share(margin.level)} of the next{whose} stay below {text(bound)}"


def _share(level: float) -> str:
    return f"{100 * level:.10g} %"
