"""How much of one thing is enough for the next run, from what earlier runs of the job are known to have needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jobmeter.analyse.prediction import Need, Prediction, predict, weighted_quantile

COMPLETE, LIMIT, CUT = "complete", "limit", "cut"
"""The run came to its end; it met a limit of what it asked for; it ended early for another reason."""
MOST_TIMES = {2: 1.5, 3: 2.0, 4: 3.0}
"""By the number of complete runs, how many times the largest need is asked for at most: of so few, the spread is
hardly known, and what would be safe is beyond reason."""
MOST_TIMES_EVER = 4.0
BEYOND_LIMIT = 1.5
"""What is asked for where a run met a limit and none is known to have got by with more: clearly more."""
BEYOND_LIMIT_UNKNOWN = 2.0
"""The same where no run ever completed."""
_TELLING = 5
"""Complete runs from which on their spread also tells something of the run that met a limit above them."""


class Seen(NamedTuple):
    """What one run is known to have needed."""

    value: float  # above 0
    ending: str = COMPLETE  # of the others, what they needed to the end is not known: at least that
    room: float = 1.0  # what to multiply it with, for what the figure may have missed

    @property
    def need(self) -> float:
        return self.value * self.room


class Caution(NamedTuple):
    """How careful to be."""

    level: float  # the chance with which the next run must stay below
    least_deviation: float
    single: float  # what the need of the only run is multiplied with
    keep_peaks: bool  # never below what a run needed


class Enough(NamedTuple):
    value: float
    most: float  # the largest that a run needed or met
    usual: float
    prediction: Prediction | None  # None: how runs differ is not known
    reason: str


def enough(seen: Sequence[Seen], caution: Caution, text: Callable[[float], str]) -> Enough:
    """What is enough for the next run, by runs of which something is known, newest first. At least one must be given.

    `text` writes an amount for people.
    """
    complete = [one for one in seen if one.ending == COMPLETE]
    if not complete:
        return _from_no_success(seen, text)
    prediction = predict([Need(one.need, one.ending == COMPLETE) for one in seen], caution.least_deviation)
    if prediction is None:
        value, reason = _from_single(complete[0], caution, text)
    else:
        value, reason = _from_many(complete, prediction, caution, text)
    peak = max(one.value for one in seen)
    if caution.keep_peaks and value < (floor := max(one.need for one in seen if one.ending != LIMIT)):
        value = floor
        reason = f"not below the largest seen, {text(peak)}"
    met = _largest_met(seen, caution)
    if met >= max(one.value for one in complete):
        prediction = prediction if len(complete) >= _TELLING else None
        if met * BEYOND_LIMIT > value:
            value = met * BEYOND_LIMIT
            reason = (
                f"{text(met)} was not enough and no run is known to have used more: "
                f"at least {BEYOND_LIMIT:g} times that"
            )
    return Enough(value, peak, prediction.usual if prediction else complete[0].need, prediction, reason)


def _largest_met(seen: Sequence[Seen], caution: Caution) -> float:
    """The largest limit that a run met, 0 without any; where peaks need not be kept, one met too rarely is none."""
    limits = [one.value if one.ending == LIMIT else 0.0 for one in seen]
    return max(limits) if caution.keep_peaks else weighted_quantile(limits, caution.level)


def _from_no_success(seen: Sequence[Seen], text: Callable[[float], str]) -> Enough:
    most = max(seen)
    met = max((one.value for one in seen if one.ending == LIMIT), default=0.0)
    told = f"{text(met)} was not enough" if met >= most.value else f"one used {text(most.value)} before it failed"
    value = most.need * BEYOND_LIMIT_UNKNOWN
    reason = f"no run has completed, {told}: {BEYOND_LIMIT_UNKNOWN:g} times that is a guess"
    return Enough(value, most.value, most.need, None, reason)


def _from_single(only: Seen, caution: Caution, text: Callable[[float], str]) -> tuple[float, str]:
    reason = f"one run needed {text(only.value)}; how runs differ is not known, so {caution.single:g} times that"
    return only.need * caution.single, reason


def _from_many(
    complete: Sequence[Seen], prediction: Prediction, caution: Caution, text: Callable[[float], str]
) -> tuple[float, str]:
    bound = prediction.bound(caution.level)
    if not caution.keep_peaks:
        # Runs may be of two sorts, which no one distribution describes: those that were seen stay within.
        bound = max(bound, weighted_quantile([one.need for one in complete], caution.level))
    count = len(complete)
    most = max(one.value for one in complete)
    times = MOST_TIMES.get(count, MOST_TIMES_EVER)
    cap = times * max(one.need for one in complete)
    if bound > cap:
        why = "of so few the spread is hardly known" if count in MOST_TIMES else "they differ too much to be sure"
        return cap, f"{count} runs needed up to {text(most)}; {why}, so {times:g} times that"
    return (
        bound,
        f"{count} runs needed up to {text(most)}; {_share(caution.level)} of the next stay below {text(bound)}",
    )


def _share(level: float) -> str:
    return f"{100 * level:.10g} %"
