"""Replay a history with other requests: what each method would have wasted, and how often it would have failed.

A request below the need of a run fails at the end of the run, wastes all that it held, and is retried. A request that
is enough wastes what lies above the need.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple, Protocol

from jobmeter.analyse.size.need import Need
from jobmeter.analyse.size.pool import LEAST_JUDGED, Pool, Terms
from jobmeter.analyse.size.sizer import Sizer

_PERCENTILE = 0.95
_MOST_ATTEMPTS = 50


class ReplayedTask(NamedTuple):
    """One run of a history."""

    job: str
    need: Need


class Step(NamedTuple):
    """One run, replayed."""

    task: ReplayedTask
    request: float  # of the first attempt
    failed: int  # attempts
    wasted: float  # amount times seconds


class Method(Protocol):
    """A method of requesting, which learns from each run that has ended."""

    def learn(self, job: str, past: Sequence[Need]) -> None:
        """Learn the runs of a job that are known from the start, oldest first."""

    def settle(self) -> None:
        """Called once, after all calls of `learn`."""

    def request(self, task: ReplayedTask) -> float:
        """What the first attempt at the task requests. It must not depend on the need."""

    def retry(self, task: ReplayedTask, amount: float, attempt: int) -> float:
        """What the next attempt requests, after this attempt failed with `amount`."""

    def update(self, task: ReplayedTask, failed: int) -> None:
        """Learn from a run that has ended, after `failed` failed attempts."""


class Requested:
    """What was requested; doubled when it fails. Infinite for a run that requested nothing."""

    def learn(self, job: str, past: Sequence[Need]) -> None: ...

    def settle(self) -> None: ...

    def request(self, task: ReplayedTask) -> float:
        return task.need.requested or float("inf")

    def retry(self, task: ReplayedTask, amount: float, attempt: int) -> float:
        return 2 * amount

    def update(self, task: ReplayedTask, failed: int) -> None: ...


class Percentile(Requested):
    """The amount that was enough for a share of the job's runs so far."""

    def __init__(self, share: float = _PERCENTILE) -> None:
        self._share = share
        self._needs: dict[str, list[float]] = {}

    def learn(self, job: str, past: Sequence[Need]) -> None:
        self._needs[job] = sorted(need.amount for need in past)

    def request(self, task: ReplayedTask) -> float:
        needs = self._needs.get(task.job)
        return needs[ceil(self._share * len(needs)) - 1] if needs else super().request(task)

    def update(self, task: ReplayedTask, failed: int) -> None:
        insort(self._needs.setdefault(task.job, []), task.need.amount)


class Largest(Percentile):
    """The largest need of the job so far."""

    def __init__(self) -> None:
        super().__init__(1.0)


class Advised:
    """What `jobmeter size` advises."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._pool = Pool()
        self._sizers: dict[str, Sizer] = {}

    def _sizer(self, job: str) -> Sizer:
        if job not in self._sizers:
            self._sizers[job] = Sizer(self._pool)
        return self._sizers[job]

    def learn(self, job: str, past: Sequence[Need]) -> None:
        self._sizer(job).learn(past)

    def settle(self) -> None:
        """Set the price of a failure, once all runs known from the start are learned."""
        self._pool.settle(self._terms)

    def request(self, task: ReplayedTask) -> float:
        size = self._sizer(task.job).predict(task.need.features, self._terms)
        if size is not None:
            return size.amount
        return float("inf") if task.need.requested is None else self._pool.unknown(task.need.requested, self._terms)

    def retry(self, task: ReplayedTask, amount: float, attempt: int) -> float:
        sizer = self._sizer(task.job)
        if sizer.runs == 0 and task.need.requested is not None:
            return self._pool.unknown(task.need.requested, self._terms, amount)
        return sizer.retry(amount, task.need.features, self._terms, attempt)

    def update(self, task: ReplayedTask, failed: int) -> None:
        sizer = self._sizer(task.job)
        if sizer.runs >= LEAST_JUDGED:
            self._pool.outcome(failed, self._terms)
        sizer.update(task.need)


def replay(method: Method, tasks: Iterable[ReplayedTask]) -> list[Step]:
    """Replay the runs in the order given. A run without a request, of a job that is not known yet, wastes nothing."""
    return [replay_one(method, task) for task in tasks]


def replay_one(method: Method, task: ReplayedTask) -> Step:
    need = task.need
    request = amount = method.request(task)
    wasted, failed = 0.0, 0
    while amount < need.amount and failed < _MOST_ATTEMPTS:
        failed += 1
        wasted += amount * need.seconds
        amount = method.retry(task, amount, failed)
    if amount != float("inf"):
        wasted += (amount - need.amount) * need.seconds
    method.update(task, failed)
    return Step(task, request, failed, wasted)
