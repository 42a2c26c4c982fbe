"""Runs with figures that are known, to be kept in a store or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobmeter.journal.reader import Journal, JournalWindow
from jobmeter.store import open_store

DESCRIBED = {
    "proc_cpu_percent": {
        "unit": "percent", "kind": "gauge", "across": "sum", "quality": "sampled", "help": "CPU in use.",
    },
    "proc_rss_total": {
        "unit": "bytes", "kind": "gauge", "across": "sum", "quality": "sampled", "help": "Resident memory.",
    },
    "proc_processes": {
        "unit": "count", "kind": "gauge", "across": "sum", "quality": "sampled", "help": "Processes.",
    },
    "proc_read_bytes": {
        "unit": "bytes", "kind": "counter", "across": "sum", "quality": "sampled", "help": "Bytes read.",
    },
}  # fmt: skip


def record(run_id: str, name: str = "train", status: str = "completed", **figures: Any) -> Any:
    """A run record, as JSON has it. `wall_seconds`, `labels` and `requirement` are its own; other figures are usage."""
    own: dict[str, Any] = {}
    for key in ("wall_seconds", "labels", "requirement"):
        if key in figures:
            own[key] = figures.pop(key)
    return {
        "schema": "jobmeter.run/1",
        "id": run_id,
        "name": name,
        "command": ["true"],
        "cwd": "/",
        "labels": {},
        "host": {"name": "here"},
        "user": "me",
        "started": "2026-01-31T12:00:00.000Z",
        "requirement": {},
        **own,
        "outcome": {"status": status, "exit_code": 0, "signal": None},
        "usage": {key: {"value": value, "from": "test", "quality": "exact"} for key, value in figures.items()},
        "measurements": {},
        "processes": [],
        "provenance": {},
    }


def windows(count: int = 10, *, seconds: float = 1.0, megabytes: float = 100.0) -> list[JournalWindow]:
    """Windows in which memory grows from 0 to so many MiB, CPU is 80 % with peaks of 95, and one process runs."""
    return [
        JournalWindow(
            seconds * (number + 1),
            10,
            {
                "proc_cpu_percent": [95.0, 80.0],
                "proc_rss_total": round(megabytes * 2**20 * (number + 1) / count),
                "proc_processes": 1,
                "proc_read_bytes": round(2**20 * seconds),
            },
        )
        for number in range(count)
    ]


def journal(cells: Sequence[JournalWindow], **header: Any) -> Journal:
    fields: Any = {"id": "aaaa", "measurements": DESCRIBED, **header}
    return Journal(fields, list(cells), [], None, [])


def keep(location: str, *runs: Any, cells: Sequence[JournalWindow] = ()) -> None:
    """Keep runs in the store there, all with the same windows."""
    open_store(location, print).add_all([(run, cells, DESCRIBED) for run in runs])


def workflow_run(run_id: str, number: int, attempt: int = 1, status: str = "completed", **figures: Any) -> Any:
    """The record of an attempt at a job of the workflow Demo, run 1."""
    step = figures.pop("step", f"job{number}")
    workflow = {"id": "demo", "name": "Demo", "run_id": 1, "job_id": number, "step": step, "attempt": attempt}
    return {"workflow": workflow, **record(run_id, figures.pop("name", f"job{number}"), status, **figures)}
