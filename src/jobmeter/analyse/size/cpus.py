"""CPUs to request: as many as are enough for nearly every run, by the rule of over-use."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import fmean

from jobmeter.analyse.overuse import cpu_step, judge, needed_cpus, used_amount
from jobmeter.analyse.resource import CPU
from jobmeter.analyse.size.advice import Amount
from jobmeter.analyse.size.observation import requested_today
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.units import text

_FAR_BELOW = 0.5
_ALL = 0.95
_IDLE = 0.5
"""If this much of a whole CPU would not be used, only a part of it is requested."""


def advise_cpus(rows: Sequence[StoredRun], target: float, machine_cpus: int | None) -> Amount | None:
    """How many CPUs to request; None if CPU usage was not measured.

    Too few CPUs do not make a run fail: a rare run may wait for them.
    """
    measured_rows = [row for row in rows if used_amount(row, CPU) is not None]
    if not measured_rows:
        return None
    today = requested_today(rows, CPU)
    request = _sufficient_cpus(measured_rows, today, target)
    is_enough = today is not None and request > today and _was_enough(measured_rows, today)
    request = today if today is not None and is_enough else request
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
    if is_enough:
        reason += "; what it requests today was enough"
    return Amount(CPU, request, today, most, min(mean, most), None, reason)


def _sufficient_cpus(rows: Sequence[StoredRun], today: float | None, target: float) -> float:
    """CPUs that are enough for the share `target` of runs; a part of a CPU if most of a whole one would be idle."""
    step = cpu_step(today)
    cpus = _sufficient_in_steps(rows, step, target)
    if step < 1 or cpus == 1:
        return cpus
    tenths = _sufficient_in_steps(rows, 0.1, target)
    return tenths if cpus - tenths >= _IDLE else cpus


def _sufficient_in_steps(rows: Sequence[StoredRun], step: float, target: float) -> float:
    return sufficient_for(sorted(needed_cpus(row, step) for row in rows), target)


def sufficient_for(ascending: Sequence[float], target: float) -> float:
    """The least of these needs, smallest first, that is enough for the share `target` of them."""
    return ascending[min(ceil(target * len(ascending)), len(ascending)) - 1]


def _was_enough(rows: Sequence[StoredRun], cpus: float) -> bool:
    """Whether there are runs that requested this number of CPUs, and none of them used more."""
    verdicts = [judge(row, CPU) for row in rows if row.get(CPU.requested) == cpus]
    return bool(verdicts) and not any(verdict is not None and verdict.is_over for verdict in verdicts)
