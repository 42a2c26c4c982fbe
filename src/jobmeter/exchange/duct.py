"""Reads the logs of con-duct (schemas 0.1 and 0.2): `PREFIXinfo.json`, and next to it `PREFIXusage.jsonl` or `.json`.

con-duct runs `ps`, so its CPU percentage of a process is the mean over that process's life, and its memory counts
shared pages once in each process.

con-duct before 0.2.0 named no schema. It wrote the amounts of a summary with their units ("29160 KiB", "1.001 sec",
"0.5%", "unknown"), and memory in its reports in KiB (`rss_kb` in the totals; `rss` in the averages beside them).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from jobmeter.errors import quote
from jobmeter.exchange.cells import MOST_BYTES, MOST_PERCENT, MOST_SECONDS, BadCell, checked, checked_moment, moment
from jobmeter.exchange.foreign import (
    LONGEST_LINE,
    TOO_LONG,
    Facts,
    Figures,
    Items,
    Unfinished,
    UnusableRow,
    gauge,
    numbered_lines,
    run_of,
)
from jobmeter.journal.lines import DECODER
from jobmeter.journal.reader import JournalWindow
from jobmeter.model import Across, Measurement, Outcome, Status

if TYPE_CHECKING:
    from jobmeter.record.types import Host

SOURCE = "duct"
KIND = SOURCE
WORDS = "logs of con-duct"
INFO = "info.json"
USAGE = ("usage.jsonl", "usage.json")
_BESIDE = (*USAGE, "stdout", "stderr")
_SCHEMAS = ("0.1.", "0.2.")
FIRST_REPORT = "its first report"
_WITH_UNIT = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?) ?(KiB|sec|%)", re.ASCII)
_FACTORS = {"KiB": 1024, "sec": 1, "%": 1}
_UNKNOWN = ("unknown", "unknown%")

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
    """The info file of the log that `path` is a part of: all files of a log are of one run."""
    for ending in _BESIDE:
        if os.path.basename(path).endswith(ending):
            return path.removesuffix(ending) + INFO
    return path


def fits(first_line: str, beginning: str) -> bool:
    """Whether it is an info file: its JSON is on the first line, or it was reformatted and is short."""
    for text in (first_line, beginning):
        try:
            value = DECODER.decode(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return "duct_version" in value
    return False


def read(path: str, file: BinaryIO) -> Items:
    """The one run of a log. An empty info file means that the command still runs, or that con-duct was killed."""
    data = file.read(LONGEST_LINE + 1)
    if len(data) > LONGEST_LINE:
        yield UnusableRow(path, TOO_LONG)
        return
    if not data.strip():
        yield Unfinished(f"{path}: line 1")
        return
    try:
        info = DECODER.decode(data.decode("utf-8-sig"))
        if not isinstance(info, dict):
            raise BadCell("is not an info.json of con-duct")
        yield run_of(_facts(path, info, os.fstat(file.fileno()).st_mtime))
    except UnicodeDecodeError:
        yield UnusableRow(path, "is not UTF-8 text")
    except (ValueError, RecursionError) as error:
        yield UnusableRow(path, f"is not whole JSON ({error})")
    except BadCell as bad:
        yield UnusableRow(path, str(bad))


def _facts(path: str, info: dict[str, Any], written: float) -> Facts:
    schema = _text(info, "schema_version")
    # The first versions of con-duct named no schema.
    if schema is not None and not schema.startswith(_SCHEMAS):
        raise BadCell(f"schema_version {schema} is not read here: only {' and '.join(f'{each}x' for each in _SCHEMAS)}")
    summary = _part(info, "execution_summary")
    system = _part(info, "system") if info.get("system") else {}
    command = str(info.get("command", ""))
    reports, notes = _reports(path)
    started, ended = _moment(summary, "start_time"), _moment(summary, "end_time")
    provenance = {"duct_version": info.get("duct_version"), "schema": schema, "samples": summary.get("num_samples")}
    if started is None and schema is not None and not schema.startswith("0.1."):
        raise BadCell("has no start_time: its command was never started")
    if started is None and reports:
        # Schema 0.1 has no times; the first report has the time of the first sample.
        started, provenance["times_from"] = reports[0].moment, FIRST_REPORT
    windows = [] if started is None else _windows(reports, started, notes)
    words = command.split()
    user = _text(system, "user") or (system["uid"] if isinstance(system.get("uid"), str) else None)
    return Facts(
        source=SOURCE,
        identity=(str(system.get("hostname")), str(summary.get("start_time", started)), command, *_unique(summary)),
        where=path,
        name=os.path.basename(words[0]) if words else "?",
        command=[command],
        outcome=_outcome(summary),
        figures=_figures(summary, windows),
        started=started,
        ended=ended,
        wall_seconds=_number(summary, "wall_clock_time", MOST_SECONDS),
        written=written,
        labels={"message": message} if (message := _text(info, "message")) else {},
        host=_host(system),
        user=user,
        directory=_text(info, "working_directory") or _text(summary, "working_directory") or None,
        windows=windows,
        provenance=provenance,
        notes=tuple(notes),
    )


def _unique(summary: dict[str, Any]) -> list[str]:
    """What distinguishes runs of schema 0.1, which have no start time: the whole summary."""
    return [] if "start_time" in summary else [f"{name}={value}" for name, value in sorted(summary.items())]


def _part(info: dict[str, Any], name: str) -> dict[str, Any]:
    part = info.get(name)
    if not isinstance(part, dict):
        raise BadCell(f"has no {name}")
    return part


def _text(values: dict[str, Any], name: str) -> str | None:
    """The value; None if it is null or missing. Raises BadCell if it is not a text."""
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise BadCell(f"has a {name} that is no text: {quote(value)}")
    return value


def _number(values: dict[str, Any], name: str, most: float) -> float | None:
    """The value; None if it is null, "unknown" or missing. Raises BadCell if it is not a number from 0 to `most`."""
    value = values.get(name)
    if value is None or value in _UNKNOWN:
        return None
    written = _WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
    if written is None:
        return checked(value, name, most)
    return checked(float(written[1]) * _FACTORS[written[2]], name, most, value)


def _moment(summary: dict[str, Any], name: str) -> float | None:
    value = summary.get(name)
    return None if value is None else checked_moment(checked(value, name), name)


def _outcome(summary: dict[str, Any]) -> Outcome:
    """How it ended. con-duct writes 128+N for signal N, but a program may return that, too: it stays an exit code."""
    code = _number(summary, "exit_code", 2**32)
    if code is None:
        return Outcome(Status.LOST)
    return Outcome(Status.COMPLETED if code == 0 else Status.FAILED, int(code))


def _host(system: dict[str, Any]) -> Host:
    kernel = " ".join(str(system[name]) for name in ("os_name", "os_release") if system.get(name))
    host: Any = {
        "name": _text(system, "hostname"),
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
        values = {
            "peak": None if peak is None else _tidy(peak, level),
            "mean": None if mean is None else _tidy(mean, level),
        }
        figures.append((level, {field: value for field, value in values.items() if value is not None}))
    counts = [window.cells[PROCESSES.key] for window in windows if PROCESSES.key in window.cells]
    if counts:
        figures.append((PROCESSES, {"peak": max(counts)}))
    return figures


class _Report(NamedTuple):
    """A line of the usage file."""

    line: str  # file and number, for messages
    moment: float
    samples: int
    cells: dict[str, Any]


def _reports(path: str) -> tuple[list[_Report], list[str]]:
    """The time series in the usage file next to an info file, and notes on lines that could not be read."""
    reports: list[_Report] = []
    notes: list[str] = []
    if not os.path.basename(path).endswith(INFO):
        return reports, notes
    for number, line, usage in _usage_lines(path):
        where = f"{usage}: line {number}"
        try:
            if line is None:
                raise BadCell(TOO_LONG)
            reports.append(_report(where, DECODER.decode(line.decode())))
        except (ValueError, RecursionError, BadCell) as error:
            notes.append(f"{where} is left out ({error})")
    return reports, notes


def _windows(reports: list[_Report], started: float, notes: list[str]) -> list[JournalWindow]:
    windows = []
    for report in reports:
        try:
            seconds = checked(report.moment - started, "seconds since the start", MOST_SECONDS)
            windows.append(JournalWindow(round(seconds, 2), report.samples, report.cells))
        except BadCell as bad:
            notes.append(f"{report.line} is left out ({bad})")
    return windows


def _usage_lines(path: str) -> Iterator[tuple[int, bytes | None, str]]:
    for ending in USAGE:
        usage = path.removesuffix(INFO) + ending
        if not os.path.exists(usage):
            continue
        if not os.path.isfile(usage):
            raise BadCell(f"{usage}: is not a regular file")
        try:
            with open(usage, "rb") as file:
                lines = ((number, line, usage) for number, line in numbered_lines(file))
                yield from (each for each in lines if each[1] is None or each[1].strip())
            return
        except OSError as error:
            raise BadCell(f"{usage}: {error.strerror}") from None


def _report(where: str, report: Any) -> _Report:
    if not isinstance(report, dict) or not isinstance(report.get("totals"), dict):
        raise BadCell("is no report of con-duct")
    time = moment(str(report.get("timestamp")), "timestamp")
    cells: dict[str, Any] = {}
    totals = report["totals"]
    averages = _part(report, "averages") if report.get("averages") else {}
    if "rss_kb" in totals:
        totals, averages = _in_bytes(totals, "_kb"), _in_bytes(averages)
    for name, level in LEVELS.items():
        peak = _number(totals, name, _MOST[name])
        mean = _number(averages, name, _MOST[name])
        if peak is not None:
            cells[level.key] = peak if mean in (None, peak) else [peak, _tidy(mean or 0, level)]
    if isinstance(report.get("processes"), dict):
        cells[PROCESSES.key] = len(report["processes"])
    return _Report(where, time, int(_number(report, "num_samples", 1e9) or 1), cells)


def _in_bytes(values: dict[str, Any], suffix: str = "") -> dict[str, Any]:
    """The values of a report of con-duct before 0.2.0, with memory converted from KiB to bytes."""
    amounts = {name: _number(values, f"{name}{suffix}", MOST_BYTES) for name in ("rss", "vsz")}
    return {**values, **{name: None if amount is None else amount * 1024 for name, amount in amounts.items()}}


def _tidy(value: float, measurement: Measurement) -> float:
    return round(value) if measurement.unit == "bytes" else round(value, 2)
