"""Reads the logs of con-duct (schema 0.2): `PREFIXinfo.json`, and beside it `PREFIXusage.jsonl` or `usage.json`.

con-duct runs `ps`, so its CPU percentage of a process is the mean over that process's life, and its memory counts
shared pages once in each process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from jobmeter.exchange.cells import MOST_BYTES, MOST_PERCENT, MOST_SECONDS, BadCell, checked, checked_moment, moment
from jobmeter.exchange.foreign import Facts, Figures, Items, Unfinished, UnusableRow, gauge, run_of
from jobmeter.journal.reader import JournalWindow
from jobmeter.model import Across, Measurement, Outcome, Status

if TYPE_CHECKING:
    from jobmeter.record.types import Host

SOURCE = "duct"
KIND = SOURCE
WORDS = "logs of con-duct"
INFO = "info.json"
USAGE = ("usage.jsonl", "usage.json")
_SCHEMA = "0.2."

LEVELS = {
    "rss": gauge("duct_rss_total", "bytes", Across.SUM, "Resident memory by ps; shared pages count in each process."),
    "vsz": gauge("duct_vsz_total", "bytes", Across.SUM, "Address space of all processes, by ps."),
    "pmem": gauge("duct_pmem_total", "percent", Across.SUM, "Share of the machine's memory, by ps."),
    "pcpu": gauge("duct_pcpu_total", "percent", Across.SUM, "Sum of what ps calls CPU %: each process's mean so far."),
}
PROCESSES = gauge("duct_processes_seen", "count", Across.LAST, "Processes seen during a report, not all at once.")
_MOST = {"rss": MOST_BYTES, "vsz": MOST_BYTES, "pmem": MOST_PERCENT, "pcpu": MOST_PERCENT}
MEASUREMENTS: tuple[Measurement, ...] = (*LEVELS.values(), PROCESSES)


def info_path(path: str) -> str:
    """The info file of the log that `path` is a part of: its usage file names the same run."""
    for ending in USAGE:
        if os.path.basename(path).endswith(ending):
            return path.removesuffix(ending) + INFO
    return path


def fits(first_line: str, beginning: str) -> bool:
    """Its JSON is in one line, or in a small file that was made prettier."""
    for text in (first_line, beginning):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            return "duct_version" in value
    return False


def read(path: str, file: BinaryIO) -> Items:
    """The one run of a log; an empty info file is that of a command that runs, or whose duct was killed."""
    data = file.read()
    if not data.strip():
        yield Unfinished(f"{path}: line 1")
        return
    try:
        info = json.loads(data)
        if not isinstance(info, dict):
            raise BadCell("is not an info.json of con-duct")
        yield run_of(_facts(path, info))
    except UnicodeDecodeError:
        yield UnusableRow(path, "is not UTF-8 text")
    except ValueError as error:
        yield UnusableRow(path, f"is not whole JSON ({error})")
    except BadCell as bad:
        yield UnusableRow(path, str(bad))


def _facts(path: str, info: dict[str, Any]) -> Facts:
    schema = str(info.get("schema_version"))
    if not schema.startswith(_SCHEMA):
        raise BadCell(f"schema_version {schema} is not read here: only {_SCHEMA}x")
    summary = _part(info, "execution_summary")
    system = info.get("system") or {}
    command = str(info.get("command", ""))
    started = _moment(summary, "start_time")
    if started is None:
        raise BadCell("has no start_time: its command was never started")
    windows, notes = _windows(path, started)
    words = command.split()
    return Facts(
        source=SOURCE,
        identity=(str(system.get("hostname")), str(summary.get("start_time")), command),
        where=path,
        name=os.path.basename(words[0]) if words else "?",
        command=[command],
        outcome=_outcome(summary),
        figures=_figures(summary, windows),
        started=started,
        ended=_moment(summary, "end_time"),
        wall_seconds=_number(summary, "wall_clock_time", MOST_SECONDS),
        labels={"message": info["message"]} if info.get("message") else {},
        host=_host(system),
        user=system.get("user"),
        directory=info.get("working_directory") or summary.get("working_directory") or None,
        windows=windows,
        provenance={"duct_version": info.get("duct_version"), "schema": schema, "samples": summary.get("num_samples")},
        notes=tuple(notes),
    )


def _part(info: dict[str, Any], name: str) -> dict[str, Any]:
    part = info.get(name)
    if not isinstance(part, dict):
        raise BadCell(f"has no {name}")
    return part


def _number(values: dict[str, Any], name: str, most: float) -> float | None:
    """The value; None where con-duct writes null, or nothing."""
    return None if values.get(name) is None else checked(values[name], name, most)


def _moment(summary: dict[str, Any], name: str) -> float | None:
    value = summary.get(name)
    return None if value is None else checked_moment(checked(value, name), name)


def _outcome(summary: dict[str, Any]) -> Outcome:
    """con-duct writes 128+N for signal N, which a program may also return: it stays an exit code."""
    code = _number(summary, "exit_code", 2**32)
    if code is None:
        return Outcome(Status.LOST)
    return Outcome(Status.COMPLETED if code == 0 else Status.FAILED, int(code))


def _host(system: dict[str, Any]) -> Host:
    kernel = " ".join(system[name] for name in ("os_name", "os_release") if system.get(name))
    host: Any = {
        "name": system.get("hostname"),
        "cpus": system.get("cpu_total"),
        "memory_bytes": system.get("memory_total"),
        "kernel": kernel or None,
    }
    present: Host = {name: value for name, value in host.items() if value is not None}  # type: ignore[assignment]
    return present


def _figures(summary: dict[str, Any], windows: list[JournalWindow]) -> Figures:
    figures: Figures = []
    for name, level in LEVELS.items():
        peak = _number(summary, f"peak_{name}", _MOST[name])
        mean = _number(summary, f"average_{name}", _MOST[name])
        values = {"peak": peak, "mean": None if mean is None else _tidy(mean, level)}
        figures.append((level, {field: value for field, value in values.items() if value is not None}))
    counts = [window.cells[PROCESSES.key] for window in windows if PROCESSES.key in window.cells]
    if counts:
        figures.append((PROCESSES, {"peak": max(counts)}))
    return figures


def _windows(path: str, started: float) -> tuple[list[JournalWindow], list[str]]:
    """The time series beside an info file, and which lines of it could not be read."""
    windows: list[JournalWindow] = []
    notes: list[str] = []
    if not os.path.basename(path).endswith(INFO):
        return windows, notes
    for number, line, usage in _usage_lines(path):
        try:
            windows.append(_window(json.loads(line), started))
        except (ValueError, BadCell) as error:
            notes.append(f"{usage}: line {number} is left out ({error})")
    return windows, notes


def _usage_lines(path: str) -> Iterator[tuple[int, bytes, str]]:
    for ending in USAGE:
        usage = path.removesuffix(INFO) + ending
        try:
            with open(usage, "rb") as file:
                yield from ((number, line, usage) for number, line in enumerate(file, start=1) if line.strip())
            return
        except FileNotFoundError:
            continue


def _window(report: Any, started: float) -> JournalWindow:
    if not isinstance(report, dict) or not isinstance(report.get("totals"), dict):
        raise BadCell("is no report of con-duct")
    seconds = moment(str(report.get("timestamp")), "timestamp") - started
    cells: dict[str, Any] = {}
    averages = report.get("averages") or {}
    for name, level in LEVELS.items():
        peak = _number(report["totals"], name, _MOST[name])
        mean = _number(averages, name, _MOST[name])
        if peak is not None:
            cells[level.key] = peak if mean in (None, peak) else [peak, _tidy(mean or 0, level)]
    if isinstance(report.get("processes"), dict):
        cells[PROCESSES.key] = len(report["processes"])
    samples = _number(report, "num_samples", 1e9)
    return JournalWindow(round(checked(seconds, "seconds since the start", MOST_SECONDS), 2), int(samples or 1), cells)


def _tidy(value: float, measurement: Measurement) -> float:
    return round(value) if measurement.unit == "bytes" else round(value, 2)
