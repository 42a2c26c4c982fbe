"""Reads Nextflow's trace: `trace.txt`, tab-separated or as CSV, with values for people or raw.

A value without a unit is raw: bytes, milliseconds, and for dates milliseconds since 1970.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from typing import BinaryIO

from jobmeter import units
from jobmeter.errors import UsageError
from jobmeter.exchange.cells import (
    MOST_PERCENT,
    MOST_SECONDS,
    BadCell,
    amount,
    checked,
    checked_moment,
    count,
    moment,
    number,
)
from jobmeter.exchange.foreign import Facts, Figures, ForeignRun, Items, Unfinished, UnusableRow, counter, gauge, run_of
from jobmeter.exchange.foreign_table import TableFormat, read_rows
from jobmeter.model import Across, Measurement, Outcome, Requirement, Status

SOURCE = "nextflow"
KIND = SOURCE
WORDS = "a trace of Nextflow"
_STATUS = {
    "COMPLETED": Status.COMPLETED,
    "CACHED": Status.COMPLETED,
    "FAILED": Status.FAILED,
    "ABORTED": Status.CANCELLED,
}
_MET_LIMIT = {137: ("memory", Status.OOM), 140: ("time", Status.TIMEOUT)}
"""Exit codes of a task that a scheduler ended at a limit that the task requested: 128 + SIGKILL, 128 + SIGUSR2."""
_UNFINISHED = ("NEW", "SUBMITTED", "RUNNING")
_RAW = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_LABELS = {"task_id": "task_id", "tag": "tag", "attempt": "attempt", "queue": "queue", "container": "container"}

CPU_SECONDS = counter("nextflow_cpu_seconds", "seconds", Across.LAST, "CPU time: Nextflow's %cpu of its realtime.")
CPU_PERCENT = gauge("nextflow_cpu_percent", "percent", Across.LAST, "CPU use over the whole task: Nextflow's %cpu.")
MEMORY_PERCENT = gauge("nextflow_mem_percent", "percent", Across.SUM, "Share of the machine's memory: Nextflow's %mem.")
LEVELS = {
    "peak_rss": gauge("nextflow_peak_rss", "bytes", Across.SUM, "Sum of the processes' own peaks of resident memory."),
    "rss": gauge("nextflow_rss", "bytes", Across.SUM, "Resident memory of all processes; shared pages count in each."),
    "peak_vmem": gauge("nextflow_peak_vmem", "bytes", Across.SUM, "Sum of the processes' own peaks of address space."),
    "vmem": gauge("nextflow_vmem", "bytes", Across.SUM, "Address space of all processes."),
}
BYTES = {
    "rchar": counter("nextflow_rchar", "bytes", Across.SUM, "Bytes read by read(2) and the like, cached or not."),
    "wchar": counter("nextflow_wchar", "bytes", Across.SUM, "Bytes written by write(2) and the like."),
    "read_bytes": counter("nextflow_read_bytes", "bytes", Across.SUM, "Bytes read from disk."),
    "write_bytes": counter("nextflow_write_bytes", "bytes", Across.SUM, "Bytes written that go to disk."),
}
COUNTS = {
    "syscr": counter("nextflow_syscr", "count", Across.SUM, "Calls of read(2) and the like."),
    "syscw": counter("nextflow_syscw", "count", Across.SUM, "Calls of write(2) and the like."),
    "vol_ctxt": counter("nextflow_vol_ctxt", "count", Across.SUM, "Voluntary context switches."),
    "inv_ctxt": counter("nextflow_inv_ctxt", "count", Across.SUM, "Involuntary context switches."),
}
_FIGURES = {"realtime", "duration", "%cpu", "%mem", *LEVELS, *BYTES}


def header_columns(line: str) -> list[str] | None:
    """The columns that the first line of a trace names; None if the line is of another file."""
    for delimiter in ("\t", ","):
        try:
            columns = [column.strip() for column in next(csv.reader([line], delimiter=delimiter), [])]
        except csv.Error:
            continue  # a cell is longer than any name
        if "wall_seconds" in columns:
            return None  # written by `jobmeter export`
        if {"name", "process"} & set(columns) and (_FIGURES | {"hash", "task_id"}) & set(columns):
            return columns
    return None


def fits(first_line: str, beginning: str) -> bool:
    return header_columns(first_line) is not None


def _split(line: str, header: str) -> list[str]:
    """The cells of a line. Nextflow quotes nothing in its tab-separated files; a quote there is part of a name."""
    if "\t" in header:
        return next(csv.reader([line], delimiter="\t", quoting=csv.QUOTE_NONE), [])
    return next(csv.reader([line]), [])


_TRACE = TableFormat(
    header_columns, _split, ("", "-"), "names no columns of a Nextflow trace, such as name and realtime"
)


def read(path: str, file: BinaryIO) -> Items:
    times_seen: Counter[tuple[str, ...]] = Counter()
    written = os.fstat(file.fileno()).st_mtime
    for row in read_rows(path, file, _TRACE):
        if isinstance(row, UnusableRow):
            yield row
        elif row.cells.get("status", "COMPLETED") in _UNFINISHED:
            yield Unfinished(row.where)
        else:
            try:
                identity = _identity(row.cells)
                # A trace without hash and dates may hold equal rows; the second is another run.
                times_seen[identity] += 1
                yield run_of_row(row.where, row.cells, times_seen[identity], written)
            except BadCell as bad:
                yield UnusableRow(row.where, str(bad))


def run_of_row(where: str, row: dict[str, str], occurrence: int, written: float) -> ForeignRun:
    """The run of one task; `occurrence` numbers equal rows. Raises BadCell if the row cannot be used."""
    return run_of(_facts(where, row, (*_identity(row), str(occurrence)), written))


def _identity(row: dict[str, str]) -> tuple[str, ...]:
    """What identifies a task: its hash, with which its directory's name begins. Each attempt has another hash.

    In the trace of a resumed run, a cached task has the same hash: it is the same run.
    """
    if "hash" in row:
        return ("task", row["hash"], _name(row))
    dates = [row[name] for name in ("submit", "start", "complete") if name in row]
    if dates:
        return (row.get("task_id", ""), row.get("name", row.get("process", "")), row.get("attempt", "1"), *dates)
    return tuple(f"{name}={value}" for name, value in sorted(row.items()))


def _facts(where: str, row: dict[str, str], identity: tuple[str, ...], written: float) -> Facts:
    started, ended = _moment(row, "start"), _moment(row, "complete")
    wall = _seconds(row, "realtime")
    if wall is None and started is not None and ended is not None:
        wall = checked(ended - started, "complete minus start", MOST_SECONDS)
    provenance = {}
    if started is None and ended is None and (submitted := _moment(row, "submit")) is not None:
        started, provenance = submitted, {"times_from": "its submission"}
    name = _name(row)
    if not name:
        raise BadCell("has neither a process nor a name")
    labels = {label: row[column] for column, label in _LABELS.items() if column in row}
    if row.get("name", name) != name:
        labels["task"] = row["name"]
    if "rchar" in row:
        labels["bytes"] = str(amount(row["rchar"], "rchar"))  # bytes read stand for the size of the inputs
    return Facts(
        source=SOURCE,
        identity=identity,
        where=where,
        name=name,
        outcome=_outcome(row),
        figures=_figures(row, wall),
        started=started,
        ended=ended,
        wall_seconds=wall,
        written=written,
        requirement=_requirement(row),
        labels=labels,
        host={"name": row["hostname"]} if "hostname" in row else {},
        directory=row.get("workdir"),
        provenance=provenance,
    )


def _name(row: dict[str, str]) -> str:
    """The name of the process. The name of a task is that of its process, with a tag in parentheses."""
    return row.get("process") or re.sub(r" \(.*\)$", "", row.get("name", ""))


def _outcome(row: dict[str, str]) -> Outcome:
    code = count(row["exit"], "exit") if "exit" in row else None
    status = row.get("status")
    if status is None:
        return Outcome(Status.COMPLETED if code in (0, None) else Status.FAILED, code)
    if status not in _STATUS:
        raise BadCell(f"status {status!r} is not a status of Nextflow")
    if _STATUS[status] is Status.FAILED and code in _MET_LIMIT:
        limit, met = _MET_LIMIT[code]
        if limit in row:
            return Outcome(met, code)
    return Outcome(_STATUS[status], code)


def _requirement(row: dict[str, str]) -> Requirement:
    return Requirement(
        cpus=count(row["cpus"], "cpus") if "cpus" in row else None,
        memory_bytes=amount(row["memory"], "memory") if "memory" in row else None,
        runtime_seconds=_seconds(row, "time"),
    )


def _figures(row: dict[str, str], wall: float | None) -> Figures:
    figures: Figures = []
    for name, level in LEVELS.items():
        # A task that ended before it was sampled has 0 here, which no process can have.
        if name in row and (value := amount(row[name], name)) > 0:
            figures.append((level, {"peak": value}))
    if "%cpu" in row:
        percent = _percent(row, "%cpu")
        figures.append((CPU_PERCENT, {"mean": percent}))
        if wall is not None:
            figures.append((CPU_SECONDS, {"total": round(percent / 100 * wall, 3)}))
    if "%mem" in row:
        figures.append((MEMORY_PERCENT, {"peak": _percent(row, "%mem")}))
    figures += [(measurement, {"total": amount(row[name], name)}) for name, measurement in BYTES.items() if name in row]
    figures += [(measurement, {"total": count(row[name], name)}) for name, measurement in COUNTS.items() if name in row]
    return figures


def _percent(row: dict[str, str], name: str) -> float:
    return number(row[name].removesuffix("%"), name, MOST_PERCENT)


def _seconds(row: dict[str, str], name: str) -> float | None:
    if name not in row:
        return None
    if _RAW.fullmatch(row[name]):
        return number(row[name], name, MOST_SECONDS * 1000) / 1000
    try:
        return checked(units.parse_seconds(row[name]), name, MOST_SECONDS, row[name])
    except UsageError:
        raise BadCell(f"{name} {row[name]!r} is not a duration") from None


def _moment(row: dict[str, str], name: str) -> float | None:
    if name not in row:
        return None
    if _RAW.fullmatch(row[name]):
        return checked_moment(float(row[name]) / 1000, name)
    return moment(row[name], name)


MEASUREMENTS: tuple[Measurement, ...] = (
    CPU_SECONDS, CPU_PERCENT, MEMORY_PERCENT, *LEVELS.values(), *BYTES.values(), *COUNTS.values(),
)  # fmt: skip
