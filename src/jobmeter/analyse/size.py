"""What to ask for next time, from the history of a job.

    memory    what the next run stays below with the chance wanted, and never less than was seen to be needed; with
              room for what the figure may have missed
    runtime   what the next run stays below with the chance wanted; old runs lose their say
    cpus      as many as `check` finds enough for every run

Half of the chance to fail is left to memory and half to time, so that both together keep to the target. Of a job that
never completed nothing is known but that a limit it met was too low. Of a sweep it is the largest job that is sized.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from statistics import fmean
from typing import NamedTuple

from jobmeter.analyse.bounds import COMPLETE, CUT, LIMIT, Caution, Enough, Seen, enough
from jobmeter.analyse.check import CPU, MEMORY, RUNTIME, Resource, Row, job_of, met_limit
from jobmeter.analyse.opportunity import whole_cpus
from jobmeter.analyse.prediction import weighted_quantile
from jobmeter.analyse.rounding import LEAST_MEMORY, LEAST_RUNTIME, round_memory, round_runtime
from jobmeter.model import Quality, Requirement, Status
from jobmeter.units import text

MOST_RUNS = 1000
"""The newest runs of a job, by which it is sized."""
ROOM = {Quality.EXACT.value: 1.03, Quality.SAMPLED.value: 1.1, Quality.AT_LEAST.value: 1.25}
"""By how far the figure can be trusted: a limit also counts kernel memory that no process shows; a sample may have
missed a peak; of an incomplete figure, much may be missing."""
_NO_ROOM = 1.05  # so little need not be told
_MEMORY_DEVIATION, _TIME_DEVIATION = 0.02, 0.05
_SINGLE_MEMORY, _SINGLE_TIME = 1.5, 2.0
_SUREST = 1 - 1e-9
"""The highest chance that is reckoned with: much nearer to 1 it would be 1, in floating point."""
_FAR_BELOW = 0.5
_ALL = 0.95
_GB_HOUR = 2.0**30 * 3600


class Amount(NamedTuple):
    """How much of one thing to ask for; bytes, CPUs or seconds."""

    resource: Resource
    ask: float
    today: float | None  # what the newest run asked for, before any retry
    most: float  # the largest that was seen
    usual: float  # what half of the runs stay below; of CPUs, their mean
    fails: float | None  # the share of runs that would need more; None: cannot be told
    reason: str


class Advice(NamedTuple):
    """What to ask for, for one job."""

    name: str
    runs: int
    completed: int
    amounts: list[Amount]
    fails: float | None  # the share of runs that would fail for want of memory or time; None: cannot be told
    wasted_gb_hours: float | None  # a run, by what is asked for today; None: nothing is, or not measured
    wasted_core_hours: float | None

    def requirement(self) -> Requirement:
        """The amounts as a requirement; None for what is not known."""
        ask = {amount.resource: amount.ask for amount in self.amounts}
        memory = ask.get(MEMORY)
        return Requirement(ask.get(CPU), None if memory is None else int(memory), ask.get(RUNTIME))


class Wish(NamedTuple):
    """What the advice is to keep to."""

    target: float = 0.99  # the share of runs that do not fail for want of memory or time
    below_peak: bool = False  # less than a run was seen to need will do, if that was rare

    @property
    def level(self) -> float:
        """The share that must stay below each of memory and time."""
        return min(1 - (1 - self.target) / 2, _SUREST)


def advise(
    name: str,
    rows: Sequence[Row],
    wish: Wish = Wish(),  # noqa: B008
    *,
    older_peak: float = 0.0,
    machine_cpus: int | None = None,
) -> Advice:
    """What to ask for, for the job with these runs, newest first; nothing of what none of them tells.

    `older_peak` is the most memory of all runs there ever were, `machine_cpus` the CPUs the newest run could use.
    """
    ended = [row for row in rows if row.get("status") != Status.RUNNING][:MOST_RUNS]
    found = [_memory(ended, wish, older_peak), _cpus(ended, wish, machine_cpus), _runtime(ended, wish)]
    completed = [row for row in ended if row.get("status") == Status.COMPLETED]
    met = {row.get("status") for row in ended}
    amounts = [one for one in found if one is not None and (completed or one.resource.met_by in met)]
    shares = [amount.fails for amount in amounts if amount.resource is not CPU]
    known = [share for share in shares if share is not None]
    return Advice(
        name,
        len(ended),
        len(completed),
        amounts,
        1 - prod(1 - share for share in known) if known and len(known) == len(shares) else None,
        _wasted_memory(completed, _today(ended, MEMORY)),
        _wasted_cpus(completed, _today(ended, CPU)),
    )


def _today(rows: Sequence[Row], resource: Resource) -> float | None:
    """What the newest run asked for; a retry may have asked for more than the spec does."""
    if not rows:
        return None
    key = job_of(rows[0]).key
    attempts = [row for row in rows if job_of(row).key == key] if key[0] else rows[:1]
    asked: float | None = min(attempts, key=lambda row: job_of(row).attempt).get(resource.asked)
    return asked


def _ending(row: Row, resource: Resource) -> str:
    if row.get("status") == Status.COMPLETED:
        return COMPLETE
    return LIMIT if row.get("status") == resource.met_by else CUT


def _seen(row: Row, resource: Resource, room: float) -> Seen | None:
    """None when it is not known what the run used."""
    used = row.get(resource.used) or 0.0
    # Who met a limit had all of it, whatever was seen; the time it then took to end is not part of it.
    value = row[resource.asked] if met_limit(row, resource) else used
    value = max(value, used) if resource is MEMORY else value
    return Seen(value, _ending(row, resource), room, str(row["name"])) if value > 0 else None


def _memory(rows: Sequence[Row], wish: Wish, older_peak: float) -> Amount | None:
    found = [_seen(row, MEMORY, ROOM.get(str(row.get(MEMORY.quality)), ROOM["sampled"])) for row in rows]
    seen = [one for one in found if one is not None]
    if not seen:
        return None
    caution = Caution(wish.level, _MEMORY_DEVIATION, _SINGLE_MEMORY, not wish.below_peak)
    told = enough(seen, caution, lambda value: text(value, "bytes"))
    older = older_peak * ROOM["sampled"]
    if older_peak > told.most and older > told.value and not wish.below_peak:
        reason = f"not below the largest ever seen, {text(older_peak, 'bytes')}"
        told = told._replace(value=older, most=older_peak, reason=reason)
    room = max(one.room for one in seen)
    if room > _NO_ROOM:
        told = told._replace(reason=f"{told.reason}, with {100 * (room - 1):.0f} % for what the figure may miss")
    return _amount(rows, MEMORY, round_memory(told.value), told)


def _runtime(rows: Sequence[Row], wish: Wish) -> Amount | None:
    seen = [one for one in (_seen(row, RUNTIME, 1.0) for row in rows) if one is not None]
    if not seen:
        return None
    caution = Caution(wish.level, _TIME_DEVIATION, _SINGLE_TIME, False)
    told = enough(seen, caution, lambda value: text(value, "seconds"))
    return _amount(rows, RUNTIME, round_runtime(told.value), told)


def _amount(rows: Sequence[Row], resource: Resource, rounded: float, told: Enough) -> Amount:
    today = _today(rows, resource)
    ask, reason = rounded, told.reason
    if today is not None and told.value <= today < rounded:
        ask = today
        reason += ", for which what it asks for today is enough"
    elif (words := _words(rounded, resource)) != _words(told.value, resource):
        least = LEAST_MEMORY if resource is MEMORY else LEAST_RUNTIME
        reason += f"; rounded up to {words}{', the least' if rounded == least else ''}"
    fails = told.prediction.exceeding(ask) if told.prediction else None
    return Amount(resource, ask, today, told.most, min(told.usual, told.most), fails, reason)


def _words(value: float, resource: Resource) -> str:
    return text(value, resource.unit)


def _cpus(rows: Sequence[Row], wish: Wish, machine_cpus: int | None) -> Amount | None:
    known = [row for row in rows if row.get(CPU.used) is not None]
    if not known:
        return None
    needs = [float(whole_cpus(row)) for row in known]
    ask = weighted_quantile(needs, wish.target) if wish.below_peak else max(needs)
    most = max(row[CPU.used] for row in known) / 100
    mean = fmean(row.get("cpu_mean_percent", row[CPU.used]) for row in known) / 100
    most_told, mean_told = text(most, "count"), text(mean, "count")
    reason = f"at most {most_told} at once"
    if mean < _FAR_BELOW * ask and mean_told != most_told:
        reason += f", but {mean_told} on average"
    if machine_cpus and most >= _ALL * machine_cpus:
        reason += "; that is all the machine has, on a larger one it may use more"
    elif _ALL * (asked := known[0].get(CPU.asked, float("inf"))) <= most <= asked / _ALL:
        reason += "; that is all it asked for, with more it may use more"
    return Amount(CPU, ask, _today(rows, CPU), most, min(mean, most), None, reason)


def _wasted_memory(completed: Sequence[Row], today: float | None) -> float | None:
    if today is None:
        return None
    unused = [
        max(today - row[MEMORY.used], 0) * row["wall_seconds"]
        for row in completed
        if row.get(MEMORY.used) is not None and row.get("wall_seconds") is not None
    ]
    return fmean(unused) / _GB_HOUR if unused else None


def _wasted_cpus(completed: Sequence[Row], today: float | None) -> float | None:
    if today is None:
        return None
    unused = [
        max(today * row["wall_seconds"] - row["cpu_seconds"], 0)
        for row in completed
        if row.get("cpu_seconds") is not None and row.get("wall_seconds") is not None
    ]
    return fmean(unused) / 3600 if unused else None
