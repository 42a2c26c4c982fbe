"""The online predictor of one job: `fit` it to stored runs, `predict` the next run, `retry` a failed one, `update` it.

    memory    the request of least cost on the job's own past runs, with room for what the figure may have missed
    runtime   the same; not below the longest run, unless that is allowed or a feature of the run is known
    cpus      as many as the rule of over-use finds enough for nearly every run, and no more than is requested if
              that was enough; a fraction of a CPU stays a fraction
    gpus      as many as any run had processes on, for jobs that request or use GPUs
    memory of a GPU, if it was measured: the same as memory

For a job that never completed, it is only known that a limit it met was too low. For a sweep whose parameters are not
given, the largest job is sized.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from statistics import median

from jobmeter.analyse.resource import CPU, GPU_MEMORY, MEMORY, RUNTIME, Resource
from jobmeter.analyse.rounding import LEAST_MEMORY, LEAST_RUNTIME, round_memory, round_runtime
from jobmeter.analyse.size.advice import Advice, Amount
from jobmeter.analyse.size.cost import cost_of, wasted_cpus, wasted_memory
from jobmeter.analyse.size.cpus import advise_cpus
from jobmeter.analyse.size.gpus import advise_gpus
from jobmeter.analyse.size.need import NO_FEATURES, Features
from jobmeter.analyse.size.observation import (
    BEYOND_LIMIT,
    BEYOND_LIMIT_UNKNOWN,
    BYTES,
    COMPLETE,
    LIMIT,
    READ_BYTES,
    Observation,
    needs,
    observe,
    of_newest_version,
    requested_today,
    version_of,
    without_superseded,
)
from jobmeter.analyse.size.policy import Policy
from jobmeter.analyse.size.pool import Pool
from jobmeter.analyse.size.sizer import SINGLE, Size, Sizer
from jobmeter.analyse.size.sweep import as_largest
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.model import Status
from jobmeter.units import text

MOST_RUNS = 1000
"""A job is sized by at most this many of its newest runs."""
_RECENT = 50
"""The newest runs, which show what a job may need in any order: the advice is for more than the very next run."""
_NO_ROOM = 1.05  # less room is not mentioned
_ENOUGH = 1.02
"""A request that never failed is known to be enough if it is this many times the largest need."""


class Pools:
    """The pool of each resource, which the jobs of a workflow share."""

    def __init__(self) -> None:
        self._pools: dict[Resource, Pool] = {}

    def of(self, resource: Resource) -> Pool:
        return self._pools.setdefault(resource, Pool())

    def settle(self, policy: Policy, features: Collection[str] | None) -> None:
        """Raise the prices of failures until the failures expected of all jobs together meet the target."""
        expected = [pool.settle(policy.terms(resource), features) for resource, pool in self._pools.items()]
        if sum(expected) > 1 - policy.target:
            for resource, pool in self._pools.items():
                pool.settle(policy.terms(resource), features, 1 / len(self._pools))


class Predictor:
    """What is learned about one job."""

    def __init__(self, name: str, policy: Policy, pools: Pools | None = None) -> None:
        self.name = name
        self._policy = policy
        self._pools = pools if pools is not None else Pools()
        self._rows: list[StoredRun] = []  # newest first
        self._version = ""  # the only version whose runs count, in words; empty: all runs count
        self._sizers: dict[Resource, Sizer] = {}

    def learn(self, rows: Iterable[StoredRun]) -> None:
        """Learn from all runs of the past, newest first."""
        ended = [row for row in rows if row.get("status") != Status.RUNNING][:MOST_RUNS]
        self._rows = of_newest_version(ended)
        if len(self._rows) < len(ended):
            newest = next(row for row in self._rows if row.get("status") == Status.COMPLETED)
            self._version = "of " + ", ".join(version_of(newest)).replace("=", " ")
        has_gpu_memory = any(row.get(GPU_MEMORY.used) for row in self._rows)
        for resource in (MEMORY, RUNTIME, GPU_MEMORY) if has_gpu_memory else (MEMORY, RUNTIME):
            pool = self._pools.of(resource)
            if resource in self._sizers:
                pool.leave(self._sizers[resource])
            sizer = self._sizers[resource] = Sizer(pool)
            sizer.learn(needs(self._observations(resource)[::-1], resource))

    def _observations(self, resource: Resource) -> list[Observation]:
        return observe(without_superseded(self._rows), resource)

    def update(self, row: StoredRun) -> None:
        """Learn from a run that has ended."""
        self._rows.insert(0, row)
        del self._rows[MOST_RUNS:]
        is_new_version = bool(version_of(row)) and len(of_newest_version(self._rows)) < len(self._rows)
        if is_new_version or (row.get(GPU_MEMORY.used) and GPU_MEMORY not in self._sizers):
            self.learn(self._rows)
            return
        for resource, sizer in self._sizers.items():
            for need in needs(observe([row], resource), resource):
                sizer.update(need)

    def predict(self, features: Features = NO_FEATURES, machine_cpus: int | None = None) -> Advice:
        """What a run with these features shall request; without resources that no run has figures of."""
        rows = self._rows
        completed = [row for row in rows if row.get("status") == Status.COMPLETED]
        met = {row.get("status") for row in rows}
        estimates = [
            self._learned(MEMORY, features),
            advise_cpus(rows, self._policy.target, machine_cpus),
            self._learned(RUNTIME, features),
            advise_gpus(rows),
            self._learned(GPU_MEMORY, features),
        ]
        amounts = [one for one in estimates if one is not None and (completed or one.resource.limit_status in met)]
        shares = [amount.fails for amount in amounts if amount.resource in (MEMORY, RUNTIME)]
        known_shares = [share for share in shares if share is not None]
        all_known = bool(known_shares) and len(known_shares) == len(shares)
        return Advice(
            self.name,
            len(rows),
            len(completed),
            amounts,
            1 - prod(1 - share for share in known_shares) if all_known else None,
            wasted_memory(completed, requested_today(rows, MEMORY)),
            wasted_cpus(completed, requested_today(rows, CPU)),
            cost_of(completed, {resource: requested_today(rows, resource) for resource in (MEMORY, CPU)}),
            cost_of(completed, {amount.resource: amount.request for amount in amounts}),
        )

    def retry(self, amount: Amount, attempt: int) -> float:
        """What to request of a resource after this amount was not enough in an attempt, counted from 1."""
        terms = self._policy.terms(amount.resource)
        larger = self._sizers[amount.resource].retry(amount.request, amount.features, terms, attempt)
        return _rounded(larger, amount.resource)

    def _learned(self, resource: Resource, features: Features) -> Amount | None:
        observations = self._observations(resource)
        if not observations:
            return None
        today = requested_today(self._rows, resource)
        most = max(one.value for one in observations)
        complete = [one.value for one in observations if one.ending == COMPLETE]
        if not complete:
            return _guess(observations, resource, today, most)
        sizer = self._sizers[resource]
        usable = sizer.known(_with_reading(features, sizer))
        if not usable and len({one.name for one in observations}) > 1:
            sizer = Sizer(self._pools.of(resource), is_counted=False)
            sizer.learn(needs(as_largest(observations)[::-1], resource))
            whose = "of its largest job, " + max(observations, key=lambda one: one.value).name
        else:
            whose = self._version
        size = sizer.predict(usable, self._policy.terms(resource))
        assert size is not None, "a run that completed is a need"
        law = sizer.law(self._policy.terms(resource)) if resource is MEMORY else None
        amount, reason = size.amount, _reason(size, resource, most, whose)
        met = _largest_reached_limit(observations, self._policy)
        if met:
            amount = max(amount, met * BEYOND_LIMIT)
            words = text(met, resource.unit)
            reason = (
                f"{words} was not enough and no run is known to have used more: at least {BEYOND_LIMIT:g} times that"
            )
        if resource is RUNTIME and not usable and not self._policy.below_peak and amount < most:
            amount, reason = most, f"{reason}; not below the longest run"
        elif (
            not usable
            and not self._policy.below_peak
            and amount < (usual_most := _usual_most(observations, self._policy))
        ):
            amount, reason = usual_most, f"{reason}; not below what is not rare among the last {_RECENT}"
        request, reason = _settled(amount, resource, today, observations, reason, is_beyond=sizer.is_beyond(usable))
        room = max(one.room for one in observations)
        if room > _NO_ROOM:
            reason += f", with {100 * (room - 1):.0f} % for what the figure may miss"
        usual = min(median(complete), most)
        return Amount(resource, request, today, most, usual, size.failing, reason, law, usable)


def fit(
    name: str,
    rows: Iterable[StoredRun],
    policy: Policy = Policy(),  # noqa: B008
    pools: Pools | None = None,
) -> Predictor:
    """A predictor that knows these runs, newest first."""
    predictor = Predictor(name, policy, pools)
    predictor.learn(rows)
    return predictor


def advise(
    name: str,
    rows: Sequence[StoredRun],
    policy: Policy = Policy(),  # noqa: B008
    *,
    features: Features = NO_FEATURES,
    machine_cpus: int | None = None,
    pools: Pools | None = None,
) -> Advice:
    """What a job with these runs, newest first, shall request. The newest run could use `machine_cpus` CPUs."""
    pools = pools if pools is not None else Pools()
    predictor = fit(name, rows, policy, pools)
    pools.settle(policy, features)
    return predictor.predict(features, machine_cpus)


def _with_reading(features: Features, sizer: Sizer) -> Features:
    """The features, with the size of the inputs as the bytes that will be read if no run has the size as a label."""
    if BYTES in features and not sizer.knows(BYTES) and READ_BYTES not in features:
        return {**features, READ_BYTES: features[BYTES]}
    return features


def _guess(observations: Sequence[Observation], resource: Resource, today: float | None, most: float) -> Amount:
    """A guess for a job that never completed."""
    met = max((one.value for one in observations if one.ending == LIMIT), default=0.0)
    amount = max(one.amount for one in observations) * BEYOND_LIMIT_UNKNOWN
    words = text(most, resource.unit)
    limit_met = f"{words} was not enough" if met >= most else f"one used {words} before it failed"
    reason = f"no run has completed, {limit_met}: {BEYOND_LIMIT_UNKNOWN:g} times that is a guess"
    return Amount(resource, _rounded(amount, resource), today, most, most, None, reason)


def _largest_reached_limit(observations: Sequence[Observation], policy: Policy) -> float:
    """The largest limit that a run met and no run is known to have exceeded; 0 if runs met such a limit only rarely."""
    most = max((one.value for one in observations if one.ending != LIMIT), default=0.0)
    met = [one.value for one in observations if one.ending == LIMIT and one.value >= most]
    return max(met, default=0.0) if len(met) > (1 - policy.target) * len(observations) else 0.0


def _usual_most(observations: Sequence[Observation], policy: Policy) -> float:
    """The largest need of the newest completed runs, leaving out as many of the largest as may fail."""
    recent = sorted([one.amount for one in observations if one.ending == COMPLETE][:_RECENT])
    may_fail = int((1 - policy.target) * len(recent) + 1e-9)
    return recent[max(len(recent) - 1 - may_fail, 0)]


def _reason(size: Size, resource: Resource, most: float, whose: str) -> str:
    runs = f"{size.runs:,} runs {whose + ' ' if whose else ''}needed up to {text(most, resource.unit)}"
    if size.runs == 1:
        run = f"one run {whose}".rstrip()
        return f"{run} needed {text(most, resource.unit)}; how runs differ is not known, so {SINGLE:g} times that"
    by = f"by the {size.model} of {size.feature}" if size.feature else f"by their {size.model}"
    past = size.past
    if past is None:
        return f"{runs}; {by}"
    failed = "none" if past.failed == 0 else f"{past.failed:,}"
    return f"{runs}; {by}, of the last {past.runs:,} runs {failed} would have failed, mean waste {_percent(past.waste)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _settled(
    amount: float,
    resource: Resource,
    today: float | None,
    observations: Sequence[Observation],
    reason: str,
    *,
    is_beyond: bool,
) -> tuple[float, str]:
    """The amount rounded up, and the reason. A request that never failed and is above every need is not raised."""
    rounded = _rounded(amount, resource)
    if today is not None and amount <= today < rounded:
        return today, f"{reason}; what it requests today is enough"
    never_failed = today is not None and not any(one.ending == LIMIT and one.value >= today for one in observations)
    if today is not None and rounded > today and never_failed and not is_beyond:
        largest = max(one.amount for one in observations)
        if today >= _ENOUGH * largest:
            return today, f"{reason}; what it requests today never failed"
    least = LEAST_RUNTIME if resource is RUNTIME else LEAST_MEMORY
    if rounded == least and rounded > amount:
        reason += f"; rounded up to {text(rounded, resource.unit)}, the least"
    return rounded, reason


def _rounded(amount: float, resource: Resource) -> float:
    return round_runtime(amount) if resource is RUNTIME else round_memory(amount)
