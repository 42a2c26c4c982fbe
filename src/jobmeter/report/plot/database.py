"""The curves in a portable database, as `export --format sqlite` writes it and a workflow leaves it in its directory.

Any SQLite file with a table or view `job_resource_samples` (job_id, timestamp, cpu_percent, memory_bytes,
num_processes) can be read; a table `job_metadata` with further fields of the jobs is used if it exists.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from jobmeter.analyse.stored_run import StoredRun
from jobmeter.errors import UsageError
from jobmeter.journal.reader import Journal, JournalWindow
from jobmeter.model import Kind, Status
from jobmeter.report.plot.series import CPU, MEMORY, STANDARD, JobCurves, job_curves
from jobmeter.store.query.fields import FIELDS
from jobmeter.times import parse_moment, utc

_MAGIC = b"SQLite format 3\0"
_NEEDED = {"job_id", "timestamp", "cpu_percent", "memory_bytes", "num_processes"}
_PANELS = {
    "cpu_percent": (CPU, "percent", "CPU in use, the mean of each window; 100 is one core."),
    "memory_bytes": (MEMORY, "bytes", "Memory in use, the most in each window."),
    "num_processes": (STANDARD[2], "count", "Processes, the most at a time in each window."),
}
"""Column of the samples → the panel it is drawn in, its unit and its help."""


def is_database(path: str) -> bool:
    """Whether the file is an SQLite database."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def curves_of_database(path: str, job_ids: Sequence[str] = (), most: int = 2000) -> list[JobCurves]:
    """The curves of all jobs, or of those with these numbers. Raises UsageError if there are none."""
    try:
        # Read-only: another program may have it open, and no file is written next to it.
        location = f"file:{_quoted(os.path.abspath(path))}?mode=ro"
        with contextlib.closing(sqlite3.connect(location, uri=True)) as database:
            database.row_factory = sqlite3.Row
            columns = _columns(database, "job_resource_samples")
            if not columns >= _NEEDED:
                raise UsageError(f"{path}: has no table job_resource_samples, so there is nothing to draw in it")
            runs = list(_runs(database, columns))
    except sqlite3.Error as error:
        raise UsageError(f"{path}: {error}") from None
    numbers = [str(row["job_id"]) for row, _ in runs]
    for job_id in job_ids:
        if job_id not in numbers:
            there_are = ", ".join(dict.fromkeys(numbers[:20]))
            raise UsageError(f"{path}: has no job {job_id} with samples. It has: {there_are or 'none'}.")
    if not runs:
        raise UsageError(f"{path}: nothing to plot: it has no samples")
    return [_curves(row, windows, most) for row, windows in runs if not job_ids or str(row["job_id"]) in job_ids]


def _quoted(path: str) -> str:
    return "".join(f"%{ord(letter):02x}" if letter in "%?#" else letter for letter in path)


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in database.execute(f"PRAGMA table_info({table})")}


def _runs(database: sqlite3.Connection, columns: set[str]) -> Iterator[tuple[StoredRun, list[JournalWindow]]]:
    """Each run with its windows. The runs of one job are separate if the samples name their run (`run_id`)."""
    key = "run_id" if "run_id" in columns else "job_id"
    about = _metadata(database, key)
    rows = database.execute(f"SELECT * FROM job_resource_samples ORDER BY job_id, {key}, timestamp")
    run: Any = None
    samples: list[sqlite3.Row] = []
    for row in rows:
        if samples and row[key] != run:
            yield _run(samples, about.get(run, {}))
            samples = []
        run = row[key]
        samples.append(row)
    if samples:
        yield _run(samples, about.get(run, {}))


def _metadata(database: sqlite3.Connection, key: str) -> dict[Any, dict[str, Any]]:
    columns = _columns(database, "job_metadata")
    if key not in columns:
        return {}
    rows = database.execute("SELECT * FROM job_metadata")
    return {row[key]: {name: row[name] for name in row.keys() if row[name] is not None} for row in rows}  # noqa: SIM118


def _run(samples: list[sqlite3.Row], about: dict[str, Any]) -> tuple[StoredRun, list[JournalWindow]]:
    moments = [_seconds(row["timestamp"]) for row in samples]
    started = _seconds(about["started"]) if "started" in about else moments[0]
    windows = [
        JournalWindow(
            round(max(moment - started, 0.0), 3),
            1,
            {key: row[key] for key in _PANELS if isinstance(row[key], (int, float))},
        )
        for moment, row in zip(moments, samples)
    ]
    first = {name: samples[0][name] for name in samples[0].keys()}  # noqa: SIM118 - a row is no mapping
    names = {**first, **about}
    run: dict[str, Any] = {"status": Status.COMPLETED.value, "wall_seconds": windows[-1].seconds, **_fields(about)}
    run["id"] = str(names.get("run_id", first["job_id"]))
    run["name"] = str(names.get("job_name") or f"job {first['job_id']}")
    run["started"] = utc(started)
    run["job_id"] = first["job_id"]
    return run, windows


def _fields(about: dict[str, Any]) -> dict[str, Any]:
    """The fields of a run whose values have the right type: another program may have written the database."""
    fields = {}
    for name, field in FIELDS.items():
        value = about.get(name)
        if field.unit in ("text", "time"):
            is_valid = isinstance(value, str)
        elif field.unit == "json":
            value, is_valid = _parsed(name, value)
        else:
            is_valid = isinstance(value, (int, float))
        if is_valid:
            fields[name] = value
    return fields


def _parsed(name: str, value: Any) -> tuple[Any, bool]:
    if name == "command" and isinstance(value, str) and not value.startswith("["):
        return [value], True
    try:
        parsed = json.loads(value)
    except (TypeError, ValueError):
        return None, False
    return parsed, isinstance(parsed, dict if name in ("labels", "workflow_job") else list)


def _seconds(timestamp: Any) -> float:
    """A time as seconds since 1970; a number is taken as it is. Raises UsageError if it is not a time."""
    try:
        return float(timestamp) if isinstance(timestamp, (int, float)) else parse_moment(str(timestamp)).timestamp()
    except ValueError:
        raise UsageError(f"{timestamp!r} in job_resource_samples is not a time") from None


def _curves(row: StoredRun, windows: list[JournalWindow], most: int) -> JobCurves:
    described = {
        key: {"unit": unit, "kind": Kind.GAUGE.value, "help": help_} for key, (_, unit, help_) in _PANELS.items()
    }
    header: Any = {"id": row["id"], "measurements": described}
    curves = job_curves(row, Journal(header, windows, [], None, []), list(_PANELS), most)
    panels = []
    for panel in curves.panels:
        heading = _PANELS[panel.curve.key][0]
        amount = row.get(heading.requirement) if heading.requirement else None
        requested = None if amount is None else amount * heading.times
        panels.append(panel._replace(title=heading.title, requested=requested))
    return curves._replace(panels=panels)
