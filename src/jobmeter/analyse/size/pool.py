"""What the jobs of one workflow share: how far needs vary, what a failure costs, how needs compare with requests."""

from __future__ import annotations

from collections.abc import Collection
from math import exp, log
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.analyse.size.choice import Price
from jobmeter.analyse.size.need import Need
from jobmeter.analyse.size.shares import choose_share

if TYPE_CHECKING:
    from jobmeter.analyse.size.sizer import Sizer

USUAL_TARGET = 0.98
STEP = 0.2
"""How fast the price of a failure grows when more fail than the budget allows."""
BUDGET = 0.61
"""The part of the failures allowed by the target that each of memory and time may cause."""
LEAST_JUDGED = 8
"""Runs of a job from which on its failures raise the price of a failure: those of a job with few runs prove nothing."""
USUAL_SPREAD = 0.03
_FEW_JOBS = 5
_SETTLING = 30
"""The price is raised at most this many times, by half each time."""
_MOST_SETTLED = 50


class Terms(NamedTuple):
    """The terms that the advice on one resource must meet."""

    target: float = USUAL_TARGET  # the share of runs that must not fail
    failure_cost: float = 1.0  # the price of a failure, in runs of the workflow
    plus: float = 0.0  # added to each request: what differs between equal runs

    @property
    def strictness(self) -> float:
        """Factor on the logarithm of the largest margin that is allowed with the usual target; at least 1."""
        return max(log(1 - self.target) / log(1 - USUAL_TARGET), 1.0)


class Pool:
    """One resource, over all jobs of a workflow."""

    def __init__(self) -> None:
        self._sizers: list[Sizer] = []
        self._used = 0.0
        self._runs = 0
        self._dearer = 1.0
        self._spread: float | None = None

    def join(self, sizer: Sizer) -> None:
        self._sizers.append(sizer)

    def leave(self, sizer: Sizer) -> None:
        """Remove the sizer of a job that is learned again from the start, with its runs."""
        self._sizers.remove(sizer)
        # Added up again: subtraction would leave a rounding error, which can be larger than what the others used.
        self._used = sum(each.used for each in self._sizers)
        self._runs = sum(each.learned for each in self._sizers)
        self._spread = None

    def add(self, need: Need) -> None:
        self._used += need.amount * need.seconds
        self._runs += 1
        self._spread = None

    def outcome(self, failed: int, terms: Terms = Terms()) -> None:  # noqa: B008
        """Count attempts of a run that failed because too little was advised: too many raise the price of a failure."""
        self._dearer = max(1.0, self._dearer * exp(STEP * (failed - BUDGET * (1 - terms.target))))

    def settle(self, terms: Terms, features: Collection[str] | None = None, budget: float = BUDGET) -> float:
        """Raise the price of a failure until no more failures are expected, over all jobs, than the target allows.

        Returns the share of runs expected to fail. `budget` is the part of the failures allowed by the target that this
        resource may cause; `features` are the features known of future runs; None: all.
        """
        repeated = [sizer for sizer in self._sizers if sizer.runs > 1]
        sample = repeated[:: max(len(repeated) // _MOST_SETTLED, 1)]
        runs = sum(sizer.runs for sizer in sample)
        for _ in range(_SETTLING):
            failing = sum(sizer.runs * sizer.expected_failures(terms, features) for sizer in sample)
            if failing <= budget * (1 - terms.target) * runs:
                break
            self._dearer *= 1.5
        return failing / runs if runs else 0.0

    def price(self, terms: Terms) -> Price:
        failure = terms.failure_cost * self._dearer * self._used / self._runs if self._runs else 0.0
        return Price(failure, self._usual_spread())

    def _usual_spread(self) -> float:
        """The median of the jobs' spreads, or an assumed spread if there are few jobs."""
        if self._spread is None:
            spreads = [each.spread for each in self._sizers if each.runs > 1]
            self._spread = median(spreads) if len(spreads) >= _FEW_JOBS else USUAL_SPREAD
        return self._spread

    def unknown(self, requested: float, terms: Terms, above: float = 0.0) -> float:
        """What a job without stored runs shall request; more than `above`, an amount that was not enough."""
        if above >= requested:
            return 2 * above
        shares = [each.share for each in self._sizers if each.share is not None]
        return requested * choose_share(shares, self.price(terms).failure, above / requested)
