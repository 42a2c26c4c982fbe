"""GPUs to request: as many as any run had processes on."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from jobmeter.analyse.resource import GPU
from jobmeter.analyse.size.advice import Amount
from jobmeter.analyse.size.observation import requested_today
from jobmeter.analyse.stored_run import StoredRun


def advise_gpus(rows: Sequence[StoredRun]) -> Amount | None:
    """How many GPUs to request; None if they were not measured, or the job neither requests nor ever used one."""
    used = [row[GPU.used] for row in rows if row.get(GPU.used) is not None]
    today = requested_today(rows, GPU)
    if not used or (not today and not max(used)):
        return None
    most = max(used)
    reason = "no run of it had a process on a GPU" if not most else f"on at most {most:.10g} at once"
    return Amount(GPU, most, today, most, fmean(used), None, reason)
