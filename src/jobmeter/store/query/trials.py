"""The trials of a study: the jobs of a workflow's sweep, or the runs with a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobmeter.analyse.stored_run import StoredRun
from jobmeter.analyse.study import Trial
from jobmeter.errors import JobmeterError
from jobmeter.model import Status
from jobmeter.store.query.selection import Selection
from jobmeter.store.store import Store

_UNENDED = (Status.RUNNING.value, Status.DETACHED.value)


def trials_of(store: Store, selection: Selection, metric: str | None) -> list[Trial]:
    """Every selected job that has ended, oldest first, as a trial with this metric.

    A job with several attempts is one trial: it has the cost of all of them, and all else of the last one.
    """
    jobs: dict[tuple[Any, ...], list[StoredRun]] = {}
    for row in store.runs(selection._replace(descending=False)):
        jobs.setdefault(_job(row), []).append(row)
    in_order = (sorted(attempts, key=_attempt) for attempts in jobs.values())
    return [_trial(store, attempts, metric) for attempts in in_order if attempts[-1]["status"] not in _UNENDED]


def _job(row: StoredRun) -> tuple[Any, ...]:
    """What all attempts of a job have in common: workflow, run and number. Any other run is a job of its own."""
    number = (row.get("workflow_job") or {}).get("job_id")
    return (row["id"],) if number is None else (row["workflow"], row["workflow_run"], number)


def _attempt(row: StoredRun) -> int:
    return (row.get("workflow_job") or {}).get("attempt") or 1


def metric_names(rows: Sequence[StoredRun]) -> list[str]:
    """The metrics that runs have reported, the most frequent first."""
    counts: dict[str, int] = {}
    for row in rows:
        for name in row.get("metrics") or {}:
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: (-counts[name], name))


def _trial(store: Store, attempts: Sequence[StoredRun], metric: str | None) -> Trial:
    *earlier, last = attempts
    value = (last.get("metrics") or {}).get(metric) if metric is not None else None
    before = sum(map(_wall_seconds, earlier))
    wall = before + _wall_seconds(last)
    points = _points(store, last["id"], metric) if metric is not None and value is not None else ()
    cpu, peaks = _known(attempts, "cpu_seconds"), _known(attempts, "memory_peak_bytes")
    return Trial(
        id=last["id"],
        name=last["name"],
        status=last["status"],
        labels={name: text for name, text in last["labels"].items() if name != "source"},
        wall_seconds=wall,
        cpu_seconds=sum(cpu) if cpu else None,
        memory_peak_bytes=max(peaks, default=None),
        memory_mean_bytes=_memory_mean(attempts, wall),
        gpus=last.get("requirement_gpus"),
        value=value,
        points=tuple((before + seconds, reported) for seconds, reported in points),
    )


def _wall_seconds(row: StoredRun) -> float:
    return row.get("wall_seconds") or 0.0


def _known(attempts: Sequence[StoredRun], field: str) -> list[float]:
    return [row[field] for row in attempts if field in row]


def _memory_mean(attempts: Sequence[StoredRun], wall: float) -> float | None:
    """The mean over the time of all attempts, so that their GB-hours add up."""
    held = [row["memory_mean_bytes"] * _wall_seconds(row) for row in attempts if "memory_mean_bytes" in row]
    return round(sum(held) / wall) if held and wall else attempts[-1].get("memory_mean_bytes")


def _points(store: Store, run: str, metric: str) -> tuple[tuple[float, float], ...]:
    """The curve of a metric, from the journal of a run: the index has only the last value."""
    try:
        record = store.journal(run).record
    except JobmeterError:
        return ()  # the run was removed
    reported = record.get("metrics", {}).get(metric) if record is not None else None
    return tuple(zip(reported.get("seconds", ()), reported.get("values", ()))) if reported is not None else ()
