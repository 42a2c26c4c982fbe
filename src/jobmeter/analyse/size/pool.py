"""What the jobs of one workflow share: how much needs vary, what a failure costs, how needs compare with requests."""

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
"""The part of the failures that the target allows which each of memory and time may cause."""
LEAST_JUDGED = 8
"""Runs of a job, from which on its failures make failures dearer: those of a job that is hardly known are no sign."""
USUAL_SPREAD = 0.03
_FEW_JOBS = 5
_SETTLING = 30
"""Rises of the price by half, at most."""
_MOST_SETTLED = 50


class Terms(NamedTuple):
    """What is wanted of the advice."""

    target: float = USUAL_TARGET  # the share of runs that must not fail
    failure_cost: float = 1.0  # the price of a failure, in runs of the workflow
    plus: float = 0.0  # added to each request: what differs between equal runs

    @property
    def strictness(self) -> float:
        """How many times further a margin may go than with the usual target, as a power; at least 1."""
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
        """Of a job that is learned anew."""
        self._sizers.remove(sizer)
        self._spread = None

    def add(self, need: Need) -> None:
        self._used += need.amount * need.seconds
        self._runs += 1
        self._spread = None

    def outcome(self, failed: int, terms: Terms = Terms()) -> None:  # noqa: B008
        """How many attempts of a run failed for want of what was advised: too many make failures dearer."""
        self._dearer = max(1.0, self._dearer * exp(STEP * (failed - BUDGET * (1 - terms.target))))

    def settle(self, terms: Terms, features: Collection[str] | None = None, budget: float = BUDGET) -> float:
        """Raise the price of a failure until no more are expected, over all jobs, than the target allows.

        Returns the share of runs that is expected to fail. `budget` is the part of what the target allows; `features`
        are those that are known of runs to come; None is all.
        """
        known = [sizer for sizer in self._sizers if sizer.runs > 1]
        sample = known[:: max(len(known) // _MOST_SETTLED, 1)]
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
        """The middle of the jobs' spreads, or what is assumed of a job when there are few."""
        if self._spread is None:
            spreads = [each.spread for each in self._sizers if each.runs > 1]
            self._spread = median(spreads) if len(spreads) >= _FEW_JOBS else USUAL_SPREAD
        return self._spread

    def unknown(self, requested: float, terms: Terms, above: float = 0.0) -> float:
        """What a job without a past shall request, more than an amount that was not enough."""
        if above >= requested:
            return 2 * above
        shares = [each.share for each in self._sizers if each.share is not None]
        return requested * choose_share(shares, self.price(terms).failure, above / requested)
