"""The trials of a study: the runs of a workflow's sweep, or those with a label."""

from __future__ import annotations

from collections.abc import Sequence

from jobmeter.analyse.stored_run import StoredRun
from jobmeter.analyse.study import Trial
from jobmeter.errors import JobmeterError
from jobmeter.model import Status
from jobmeter.store.query.selection import Selection
from jobmeter.store.store import Store

_UNENDED = (Status.RUNNING.value, Status.DETACHED.value)


def trials_of(store: Store, selection: Selection, metric: str | None) -> list[Trial]:
    """Every selected run that has ended, oldest first, as a trial by this metric; of a job, the last attempt counts.

    What earlier attempts cost is in their own trials.
    """
    rows = [row for row in store.runs(selection._replace(descending=False)) if row["status"] not in _UNENDED]
    return [_trial(store, row, metric) for row in rows]


def metric_names(rows: Sequence[StoredRun]) -> list[str]:
    """The metrics that runs have reported, the most frequent first."""
    counts: dict[str, int] = {}
    for row in rows:
        for name in row.get("metrics") or {}:
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: (-counts[name], name))


def _trial(store: Store, row: StoredRun, metric: str | None) -> Trial:
    value = (row.get("metrics") or {}).get(metric) if metric is not None else None
    return Trial(
        id=row["id"],
        name=row["name"],
        status=row["status"],
        labels={name: text for name, text in row["labels"].items() if name != "source"},
        wall_seconds=row.get("wall_seconds") or 0.0,
        cpu_seconds=row.get("cpu_seconds"),
        memory_peak_bytes=row.get("memory_peak_bytes"),
        memory_mean_bytes=row.get("memory_mean_bytes"),
        gpus=row.get("requirement_gpus"),
        value=value,
        points=_points(store, row["id"], metric) if metric is not None and value is not None else (),
    )


def _points(store: Store, run: str, metric: str) -> tuple[tuple[float, float], ...]:
    """The curve of a metric; the index has only the last value."""
    try:
        record = store.journal(run).record
    except JobmeterError:
        return ()  # it was removed meanwhile
    reported = record.get("metrics", {}).get(metric) if record is not None else None
    return tuple(zip(reported.get("seconds", ()), reported.get("values", ()))) if reported is not None else ()
