"""What to request next time, for one job: amounts with their reasons, and their cost compared with today's request."""

from __future__ import annotations

from typing import NamedTuple

from jobmeter.analyse.resource import CPU, GPU, MEMORY, RUNTIME, Resource
from jobmeter.analyse.size.need import NO_FEATURES, Features
from jobmeter.model import Requirement


class Law(NamedTuple):
    """A request as a formula of one feature: `base + scale * feature ** power`."""

    feature: str
    base: float
    scale: float
    power: float


class Amount(NamedTuple):
    """How much of one resource to request, in bytes, CPUs, seconds or GPUs."""

    resource: Resource
    request: float
    today: float | None  # what the newest run requested, before any retry
    most: float  # the largest amount that was observed
    usual: float  # the median of the runs; for CPUs and GPUs, their mean
    fails: float | None  # the share of runs that would need more; None: not known
    reason: str
    law: Law | None = None  # how the request depends on a feature; None: it does not
    features: Features = NO_FEATURES  # of the run that the amount is for


class Cost(NamedTuple):
    """What the requests of an average run hold while it runs; None: nothing is requested, or not measured."""

    gb_hours: float | None
    core_hours: float | None


class Advice(NamedTuple):
    """What to request, for one job."""

    name: str
    runs: int
    completed: int
    amounts: list[Amount]
    fails: float | None  # the share of runs that would fail for lack of memory or time; None: not known
    wasted_gb_hours: float | None  # per run, with today's request; None: nothing is requested, or not measured
    wasted_core_hours: float | None
    today: Cost = Cost(None, None)
    advised: Cost = Cost(None, None)

    def amount(self, resource: Resource) -> Amount | None:
        return next((amount for amount in self.amounts if amount.resource is resource), None)

    def requirement(self) -> Requirement:
        """The amounts as a requirement; None for what is not known."""
        requests = {amount.resource: amount.request for amount in self.amounts}
        memory = requests.get(MEMORY)
        gpus = requests.get(GPU)
        return Requirement(
            requests.get(CPU),
            None if memory is None else int(memory),
            requests.get(RUNTIME),
            None if gpus is None else int(gpus),
        )

    def saved_gb_hours(self) -> float:
        """GiB-hours that all completed runs would have saved; negative if more is advised than is requested today."""
        return self.completed * _less(self.today.gb_hours, self.advised.gb_hours)

    def saved_core_hours(self) -> float:
        return self.completed * _less(self.today.core_hours, self.advised.core_hours)


def _less(today: float | None, advised: float | None) -> float:
    return today - advised if today is not None and advised is not None else 0.0
