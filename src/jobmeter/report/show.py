"""One run as text: its identity, how it ended, what it used and what it requested, and the findings."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jobmeter.analyse.cost import NO_FACTORS, Factors, amounts_of_run, costs
from jobmeter.analyse.findings import ending, findings
from jobmeter.analyse.headline_table import HEADLINE, requested_amount
from jobmeter.analyse.stalls import time_split
from jobmeter.analyse.timeline import WindowSample, highest_in_shares
from jobmeter.model import Quality, Status
from jobmeter.record.read import figures, requested
from jobmeter.report.peaks import gpu_peaks, job_peak, peak_text
from jobmeter.report.table import fitted_lines, local_time
from jobmeter.report.table_layout import Column
from jobmeter.report.wrapping import wrap
from jobmeter.terminal import printable
from jobmeter.units import text, without_unit

if TYPE_CHECKING:
    from jobmeter.record.types import ProcessEntry, Record, ThreadEntry

_BLOCKS = "▁▂▃▄▅▆▇█"
_SHADES = "█▓▒░ "
"""The characters of the time bar: running, runnable, disk, memory, idle."""
_BAR = 20
_SEEN = 0.005
"""Share of the time below which a part is not mentioned."""
_WIDTH = 60
_INDENT = 11
"""Columns before the content of a line, for the word that names it."""
_MOST_PROCESSES = 10
_ELSEWHERE = "--json or a pipe has all"
_USAGE = (
    Column("figure", essential=True),
    Column("used", "count", essential=True),
    Column("requested", "count"),
    Column("share", "count"),
    Column("quality"),
    Column("source", shortens=True),
)
_PROCESS = (
    Column("pid", "count", essential=True),
    Column("cpu", "seconds", essential=True),
    Column("rss_peak", "bytes", essential=True),
    Column("lived", "seconds"),
    Column("cmd", shortens=True),
)


_THREAD = (
    Column("thread", "count", essential=True),
    Column("cpu", "seconds", essential=True),
    Column("waited", "seconds"),
    Column("cores", shortens=True),
    Column("migrations", "count"),
    Column("name", shortens=True),
)


def details(
    record: Record,
    samples: Sequence[WindowSample],
    files: Iterable[tuple[str, str]],
    width: int | None = None,
    factors: Factors = NO_FACTORS,
) -> list[str]:
    """The lines of `jobmeter show`, with a blank one between subjects, for a terminal of this width; None: uncut."""
    parts = [
        _wrapped(_identity(record), width),
        [*_usage(record, width), *_costs(record, factors)],
        [*_curves(samples, width), *_time(record), *_wrapped(_peak(record), width)],
        _processes(record, width),
        _threads(record, width),
        _findings(record, samples, width),
        [f"{name:<10} {path}" for name, path in files],
    ]
    lines: list[str] = []
    for part in parts:
        if part:
            lines += [*([""] if lines else []), *part]
    return lines


_CONTAINER = ("image", "engine", "engine_version")


def _identity(record: Record) -> list[str]:
    wall = record.get("wall_seconds")
    is_running = record["outcome"]["status"] == Status.RUNNING
    after = f" after {text(wall, 'seconds')}" if wall is not None and not is_running else ""
    since = f" for {text(wall, 'seconds')} now" if wall is not None and is_running else ""
    host, container = record.get("host", {}), record.get("provenance", {}).get("container")
    started = local_time(record["started"]) if "started" in record else "not known when"
    rows = [
        ("run", f"{record['id']}  {printable(record['name'])}"),
        ("outcome", ending(record) + after + since),
        ("command", printable(shlex.join(map(str, record.get("command", []))))),
        (
            "container",
            printable("{}, {} {}".format(*(container.get(name, "?") for name in _CONTAINER))) if container else "",
        ),
        ("in", printable(str(record.get("cwd", "")))),
        ("started", f"{started}, by {printable(record.get('user', '?'))} on {printable(host.get('name', '?'))}"),
        ("labels", printable(" ".join(f"{key}={value}" for key, value in record.get("labels", {}).items()))),
    ]
    return [f"{name:<10} {content}" for name, content in rows if content]


def _wrapped(lines: Iterable[str], width: int | None, indent: int = _INDENT) -> list[str]:
    return [piece for line in lines for piece in wrap(line, width, indent)]


def _usage(record: Record, width: int | None) -> list[str]:
    """Each figure next to what was requested, with its quality and its source."""
    requirement = record.get("requirement", {})
    rows = []
    for row in HEADLINE:
        figure = record["usage"].get(row.name)
        if figure is not None and row.in_show:
            compared = _compared(figure["value"], requested_amount(row, requested(record)), row.unit)
            rows.append([without_unit(row.name), *compared, figure["quality"], figure["from"]])
    wall = record.get("wall_seconds")
    if wall is not None:
        quality = (
            Quality.AT_LEAST.value
            if record["outcome"]["status"] in (Status.RUNNING, Status.LOST, Status.DETACHED)
            else ""
        )
        rows.insert(0, ["wall", *_compared(wall, requirement.get("runtime_seconds"), "seconds"), quality, ""])
    columns: Sequence[Column] = _USAGE
    if not any(row[2] for row in rows):
        rows = [[row[0], row[1], *row[4:]] for row in rows]
        columns = (*_USAGE[:2], *_USAGE[4:])
    return fitted_lines(columns, rows, width, _ELSEWHERE) if rows else ["nothing was measured"]


def _costs(record: Record, factors: Factors) -> list[str]:
    """The cost and the carbon of the run; empty if nothing that was measured has a price."""
    values = {name: figure["value"] for name, figure in figures(record).items()}
    amounts = costs(amounts_of_run(values, record.get("wall_seconds")), factors)
    parts = [f"{amounts['cost']:.3g}"] if "cost" in amounts else []
    parts += [f"{amounts['carbon_grams']:.3g} g of CO₂"] if "carbon_grams" in amounts else []
    return ["", f"{'cost':<10} {', '.join(parts)}"] if parts else []


def _compared(used: float, requested: float | None, unit: str) -> list[str]:
    if not requested:
        return [text(used, unit), "", ""]
    return [text(used, unit), text(requested, unit), f"{100 * used / requested:.0f} %"]


def _curves(samples: Sequence[WindowSample], width: int | None) -> list[str]:
    """CPU and memory over time, when there is more than one value."""
    lines = []
    for words, unit, values in (
        ("CPU", "percent", [(sample.seconds, sample.cpu_percent) for sample in samples]),
        ("memory", "bytes", [(sample.seconds, sample.memory_bytes) for sample in samples]),
    ):
        measured = [(seconds, value) for seconds, value in values if value is not None]
        if len(measured) > 1:
            scale = f"  0 to {text(max(value for _, value in measured), unit)}"
            room = _WIDTH if width is None else max(min(_WIDTH, width - _INDENT - len(scale)), 1)
            shares = highest_in_shares(measured, min(room, len(samples)), samples[-1].seconds)
            lines.append(f"{words:<10} {sparkline(shares)}{scale}")
    return lines


def _time(record: Record) -> list[str]:
    """How the time was spent, as one bar and in percent."""
    parts = time_split(record)
    if not parts:
        return []
    bar, drawn, until = "", 0, 0.0
    for letter, share in zip(_SHADES, parts.values()):
        until += share
        bar, drawn = bar + letter * (round(until * _BAR) - drawn), round(until * _BAR)
    words = ", ".join(f"{text(100 * share, 'percent')} {name}" for name, share in parts.items() if share >= _SEEN)
    return [f"{'time':<10} {bar}  {words}"]


def _peak(record: Record) -> list[str]:
    peak = job_peak(record)
    lines = [] if peak is None else [f"{'peak':<10} {peak_text(peak)}"]
    return lines + [f"{'GPU peak':<10} {peak_text(each)}" for each in gpu_peaks(record)]


def sparkline(shares: Sequence[float]) -> str:
    """A level over time, drawn from zero; each character is the highest value in its share of the time."""
    top, steps = max(shares), len(_BLOCKS) - 1
    return "".join(_BLOCKS[round(max(share, 0) / top * steps) if top > 0 else 0] for share in shares)


def _processes(record: Record, width: int | None) -> list[str]:
    rows = [_process(entry) for entry in record.get("processes", [])[:_MOST_PROCESSES]]
    if not rows:
        return []
    return fitted_lines(_PROCESS, rows, width, _ELSEWHERE)


def _process(entry: ProcessEntry) -> list[str]:
    return [
        str(entry.get("pid", "")),
        _text_if_known(entry.get("cpu_seconds"), "seconds"),
        _text_if_known(entry.get("rss_peak_bytes"), "bytes"),
        _text_if_known(entry.get("seconds"), "seconds"),
        printable(str(entry.get("cmd", ""))),
    ]


def _threads(record: Record, width: int | None) -> list[str]:
    rows = [_thread(entry) for entry in record.get("threads", [])[:_MOST_PROCESSES]]
    return fitted_lines(_THREAD, rows, width, _ELSEWHERE) if rows else []


def _thread(entry: ThreadEntry) -> list[str]:
    return [
        str(entry.get("tid", "")),
        _text_if_known(entry.get("cpu_seconds"), "seconds"),
        _text_if_known(entry.get("run_delay_seconds"), "seconds"),
        " ".join(map(str, entry.get("cores", []))),
        str(entry.get("migrations", "")),
        printable(str(entry.get("name", ""))),
    ]


def _text_if_known(value: float | None, unit: str) -> str:
    return "" if value is None else text(value, unit)


def _findings(record: Record, samples: Sequence[WindowSample], width: int | None) -> list[str]:
    marked = [f"{'!' if one.severity == 'problem' else '-'} {one.text}" for one in findings(record, samples)]
    return _wrapped(marked, width, 2)
