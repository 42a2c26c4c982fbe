"""What to request next time, from the history of a job.

    memory    what the next run stays below with the chance requested, and never less than a run needed; with
              room for what the figure may have missed
    runtime   what the next run stays below with the chance requested; old runs count less
    cpus      as many as the rule of over-use finds enough for every run

Half of the chance to fail is left to memory and half to time, so that both together keep to the target. Of a job that
never completed, it is only known that a limit it met was too low. Of a sweep it is the largest job that is sized.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from statistics import fmean
from typing import NamedTuple

from jobmeter.analyse.check import job_of
from jobmeter.analyse.estimate import COMPLETE, CUT, LIMIT, Estimate, Margin, Observation, estimate
from jobmeter.analyse.overuse import met_limit, needed_cpus, used_amount
from jobmeter.analyse.prediction import weighted_quantile
from jobmeter.analyse.resource import CPU, MEMORY, RUNTIME, Resource
from jobmeter.analyse.rounding import LEAST_MEMORY, LEAST_RUNTIME, round_memory, round_runtime
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.model import Quality, Requirement, Status
from jobmeter.units import text

MOST_RUNS = 1000
"""The newest runs of a job, by which it is sized."""
ROOM = {Quality.EXACT.value: 1.03, Quality.SAMPLED.value: 1.1, Quality.AT_LEAST.value: 1.25}
"""By how far the figure can be trusted: a limit also counts kernel memory that no process shows; a sample may have
missed a peak; of an incomplete figure, much may be missing."""
_NO_ROOM = 1.05  # less is not mentioned
_MEMORY_DEVIATION, _TIME_DEVIATION = 0.02, 0.05
_SINGLE_MEMORY, _SINGLE_TIME = 1.5, 2.0
_SUREST = 1 - 1e-9
"""The highest chance that is used: much nearer to 1 it would be 1, in floating point."""
_FAR_BELOW = 0.5
_ALL = 0.95
_GB_HOUR = 2.0**30 * 3600


class Amount(NamedTuple):
    """How much of one resource to request; bytes, CPUs or seconds."""

    resource: Resource
    request: float
    today: float | None  # what the newest run requested, before any retry
    most: float  # the largest that was observed
    usual: float  # what half of the runs stay below; of CPUs, their mean
    fails: float | None  # the share of runs that would need more; None: not known
    reason: str


class Advice(NamedTuple):
    """What to request, for one job."""

    name: str
    runs: int
    completed: int
    amounts: list[Amount]
    fails: float | None  # the share of runs that would fail for want of memory or time; None: not known
    wasted_gb_hours: float | None  # a run, by what is requested today; None: nothing is, or not measured
    wasted_core_hours: float | None

    def requirement(self) -> Requirement:
        """The amounts as a requirement; None for what is not known."""
        requests = {amount.resource: amount.request for amount in self.amounts}
        memory = requests.get(MEMORY)
        return Requirement(requests.get(CPU), None if memory is None else int(memory), requests.get(RUNTIME))


class Policy(NamedTuple):
    """The rules that the advice must follow."""

    target: float = 0.99  # the share of runs that do not fail for want of memory or time
    below_peak: bool = False  # less than a run needed is allowed, if that was rare

    @property
    def level(self) -> float:
        """The share that must stay below each of memory and time."""
        return min(1 - (1 - self.target) / 2, _SUREST)


def advise(
    name: str,
    rows: Sequence[StoredRun],
    policy: Policy = Policy(),  # noqa: B008
    *,
    older_peak: float = 0.0,
    machine_cpus: int | None = None,
) -> Advice:
    """What to request, for the job with these runs, newest first; nothing for a resource that none of them has.

    `older_peak` is the most memory of all runs there ever were, `machine_cpus` the CPUs the newest run could use.
    """
    ended = [row for row in rows if row.get("status") != Status.RUNNING][:MOST_RUNS]
    estimates = [_memory(ended, policy, older_peak), _cpus(ended, policy, machine_cpus), _runtime(ended, policy)]
    completed = [row for row in ended if row.get("status") == Status.COMPLETED]
    met = {row.get("status") for row in ended}
    amounts = [one for one in estimates if one is not None and (completed or one.resource.met_by in met)]
    shares = [amount.fails for amount in amounts if amount.resource is not CPU]
    known_shares = [share for share in shares if share is not None]
    return Advice(
        name,
        len(ended),
        len(completed),
        amounts,
        1 - prod(1 - share for share in known_shares) if known_shares and len(known_shares) == len(shares) else None,
        _wasted_memory(completed, _today(ended, MEMORY)),
        _wasted_cpus(completed, _today(ended, CPU)),
    )


def _today(rows: Sequence[StoredRun], resource: Resource) -> float | None:
    """What the newest run requested; a retry may have requested more than the spec does."""
    if not rows:
        return None
    key = job_of(rows[0]).key
    attempts = [row for row in rows if job_of(row).key == key] if key[0] else rows[:1]
    requested: float | None = min(attempts, key=lambda row: job_of(row).attempt).get(resource.requested)
    return requested


def _ending(row: StoredRun, resource: Resource) -> str:
    if row.get("status") == Status.COMPLETED:
        return COMPLETE
    return LIMIT if row.get("status") == resource.met_by else CUT


def _observation(row: StoredRun, resource: Resource, room: float) -> Observation | None:
    """None when it is not known what the run used."""
    used = row.get(resource.used) or 0.0
    # A run that met a limit used all of it, whatever was sampled; the time it then took to end is not part of it.
    value = row[resource.requested] if met_limit(row, resource) else used
    value = max(value, used) if resource is MEMORY else value
    return Observation(value, _ending(row, resource), room, str(row["name"])) if value > 0 else None


def _memory(rows: Sequence[StoredRun], policy: Policy, older_peak: float) -> Amount | None:
    readings = [_observation(row, MEMORY, ROOM.get(str(row.get(MEMORY.quality)), ROOM["sampled"])) for row in rows]
    observations = [one for one in readings if one is not None]
    if not observations:
        return None
    margin = Margin(policy.level, _MEMORY_DEVIATION, _SINGLE_MEMORY, not policy.below_peak)
    estimated = estimate(observations, margin, lambda value: text(value, "bytes"))
    older = older_peak * ROOM["sampled"]
    if older_peak > estimated.most and older > estimated.value and not policy.below_peak:
        reason = f"not below the largest ever seen, {text(older_peak, 'bytes')}"
        estimated = estimated._replace(value=older, most=older_peak, reason=reason)
    room = max(one.room for one in observations)
    if room > _NO_ROOM:
        reason = f"{estimated.reason}, with {100 * (room - 1):.0f} % for what the figure may miss"
        estimated = estimated._replace(reason=reason)
    return _amount(rows, MEMORY, round_memory(estimated.value), estimated)


def _runtime(rows: Sequence[StoredRun], policy: Policy) -> Amount | None:
    observations = [one for one in (_observation(row, RUNTIME, 1.0) for row in rows) if one is not None]
    if not observations:
        return None
    margin = Margin(policy.level, _TIME_DEVIATION, _SINGLE_TIME, False)
    estimated = estimate(observations, margin, lambda value: text(value, "seconds"))
    return _amount(rows, RUNTIME, round_runtime(estimated.value), estimated)


def _amount(rows: Sequence[StoredRun], resource: Resource, rounded: float, estimated: Estimate) -> Amount:
    today = _today(rows, resource)
    request, reason = rounded, estimated.reason
    if today is not None and estimated.value <= today < rounded:
        request = today
        reason += ", for which what it requests today is enough"
    elif (words := _words(rounded, resource)) != _words(estimated.value, resource):
        least = LEAST_MEMORY if resource is MEMORY else LEAST_RUNTIME
        reason += f"; rounded up to {words}{', the least' if rounded == least else ''}"
    fails = estimated.prediction.exceeding(request) if estimated.prediction else None
    return Amount(resource, request, today, estimated.most, min(estimated.usual, estimated.most), fails, reason)


def _words(value: float, resource: Resource) -> str:
    return text(value, resource.unit)


def _cpus(rows: Sequence[StoredRun], policy: Policy, machine_cpus: int | None) -> Amount | None:
    measured_rows = [row for row in rows if used_amount(row, CPU) is not None]
    if not measured_rows:
        return None
    needs = [needed_cpus(row) for row in measured_rows]
    request = weighted_quantile(needs, policy.target) if policy.below_peak else max(needs)
    most = max(used_amount(row, CPU) or 0.0 for row in measured_rows) / 100
    mean = fmean(row.get("cpu_mean_percent", row.get(CPU.used)) for row in measured_rows) / 100
    most_text, mean_text = text(most, "count"), text(mean, "count")
    reason = f"at most {most_text} at once"
    if mean < _FAR_BELOW * request and mean_text != most_text:
        reason += f", but {mean_text} on average"
    if machine_cpus and most >= _ALL * machine_cpus:
        reason += "; that is all the machine has, on a larger one it may use more"
    elif _ALL * (requested := measured_rows[0].get(CPU.requested, float("inf"))) <= most <= requested / _ALL:
        reason += "; that is all it requested, with more it may use more"
    return Amount(CPU, request, _today(rows, CPU), most, min(mean, most), None, reason)


def _wasted_memory(completed: Sequence[StoredRun], today: float | None) -> float | None:
    if today is None:
        return None
    unused = [
        max(today - row[MEMORY.used], 0) * row["wall_seconds"]
        for row in completed
        if row.get(MEMORY.used) is not None and row.get("wall_seconds") is not None
    ]
    return fmean(unused) / _GB_HOUR if unused else None


def _wasted_cpus(completed: Sequence[StoredRun], today: float | None) -> float | None:
    if today is None:
        return None
    unused = [
        max(today * row["wall_seconds"] - row["cpu_seconds"], 0)
        for row in completed
        if row.get("cpu_seconds") is not None and row.get("wall_seconds") is not None
    ]
    return fmean(unused) / 3600 if unused else None
