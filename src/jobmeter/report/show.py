"""One run as text: what it was, how it ended, what it used beside what it requested, and what stands out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jobmeter.analyse.findings import ending, findings
from jobmeter.analyse.headline_table import HEADLINE, requested_amount
from jobmeter.analyse.timeline import WindowSample
from jobmeter.model import Quality, Status
from jobmeter.record.read import requested
from jobmeter.report.table import local_time, plain_table, printable
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import ProcessEntry, Record

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 60
_MOST_PROCESSES = 10


def details(record: Record, samples: Sequence[WindowSample], files: Iterable[tuple[str, str]]) -> list[str]:
    """The lines of `jobmeter show`, a blank one between subjects."""
    parts = [
        _identity(record),
        _usage(record),
        _curves(samples),
        _processes(record),
        _findings(record, samples),
        [f"{name:<10} {path}" for name, path in files],
    ]
    lines: list[str] = []
    for part in parts:
        if part:
            lines += [*([""] if lines else []), *part]
    return lines


def _identity(record: Record) -> list[str]:
    wall = record.get("wall_seconds")
    is_running = record["outcome"]["status"] == Status.RUNNING
    after = f" after {text(wall, 'seconds')}" if wall is not None and not is_running else ""
    since = f" for {text(wall, 'seconds')} now" if wall is not None and is_running else ""
    host, container = record.get("host", {}), record.get("provenance", {}).get("container")
    rows = [
        ("run", f"{record['id']}  {printable(record['name'])}"),
        ("outcome", ending(record) + after + since),
        ("command", printable(shlex.join(map(str, record.get("command", []))))),
        ("container", "{image}, {engine} {engine_version}".format_map(container) if container else ""),
        ("in", printable(str(record.get("cwd", "")))),
        ("started", f"{local_time(record['started'])}, by {record.get('user', '?')} on {host.get('name', '?')}"),
        ("labels", printable(" ".join(f"{key}={value}" for key, value in record.get("labels", {}).items()))),
    ]
    return [f"{name:<10} {content}" for name, content in rows if content]


def _usage(record: Record) -> list[str]:
    """Each figure beside what was requested, with where it is from and how far to trust it."""
    requirement = record.get("requirement", {})
    rows = []
    for row in HEADLINE:
        figure = record["usage"].get(row.name)
        if figure is not None and row.in_show:
            compared = _compared(figure["value"], requested_amount(row, requested(record)), row.unit)
            rows.append([row.heading, *compared, figure["quality"], figure["from"]])
    wall = record.get("wall_seconds")
    if wall is not None:
        quality = (
            Quality.AT_LEAST.value
            if record["outcome"]["status"] in (Status.RUNNING, Status.LOST, Status.DETACHED)
            else ""
        )
        rows.insert(0, ["wall time", *_compared(wall, requirement.get("runtime_seconds"), "seconds"), quality, ""])
    headings = ["", "used", "requested", "of it", "quality", "source"]
    if not any(row[2] for row in rows):
        rows = [[row[0], row[1], *row[4:]] for row in rows]
        headings = ["", "used", "quality", "source"]
    units = ["text", *("count" for _ in headings[1:-2]), "text", "text"]
    return plain_table(headings, units, rows) if rows else ["nothing was measured"]


def _compared(used: float, requested: float | None, unit: str) -> list[str]:
    if not requested:
        return [text(used, unit), "", ""]
    return [text(used, unit), text(requested, unit), f"{100 * used / requested:.0f} %"]


def _curves(samples: Sequence[WindowSample]) -> list[str]:
    """CPU and memory over time, when there is more than one value."""
    lines = []
    for words, unit, values in (
        ("CPU", "percent", [sample.cpu_percent for sample in samples]),
        ("memory", "bytes", [sample.memory_bytes for sample in samples]),
    ):
        measured = [value for value in values if value is not None]
        if len(measured) > 1:
            lines.append(f"{words:<10} {sparkline(measured)}  0 to {text(max(measured), unit)}")
    return lines


def sparkline(values: Sequence[float], width: int = _WIDTH) -> str:
    """A level over time, drawn from zero; each letter is the highest of its share of the time."""
    count = min(width, len(values))
    shares = [values[len(values) * n // count : len(values) * (n + 1) // count] for n in range(count)]
    top = max(values)
    if top <= 0:
        return _BLOCKS[0] * count
    steps = len(_BLOCKS) - 1
    return "".join(_BLOCKS[round(max(max(share), 0) / top * steps)] for share in shares)


def _processes(record: Record) -> list[str]:
    rows = [_process(entry) for entry in record.get("processes", [])[:_MOST_PROCESSES]]
    if not rows:
        return []
    headings = ("pid", "CPU time", "memory peak", "for", "process")
    return plain_table(headings, ("count", "seconds", "bytes", "seconds", "text"), rows)


def _process(entry: ProcessEntry) -> list[str]:
    return [
        str(entry.get("pid", "")),
        _text_if_known(entry.get("cpu_seconds"), "seconds"),
        _text_if_known(entry.get("rss_peak_bytes"), "bytes"),
        _text_if_known(entry.get("seconds"), "seconds"),
        printable(str(entry.get("cmd", "")))[:100],
    ]


def _text_if_known(value: float | None, unit: str) -> str:
    return "" if value is None else text(value, unit)


def _findings(record: Record, samples: Sequence[WindowSample]) -> list[str]:
    return [f"{'!' if finding.severity == 'problem' else '-'} {finding.text}" for finding in findings(record, samples)]
