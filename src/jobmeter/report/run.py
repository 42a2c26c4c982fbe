"""The summary of a few lines that `jobmeter run` prints at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobmeter.analyse.headline_table import HEADLINE, HeadlineFigure, SummaryPart, requested_amount
from jobmeter.analyse.outcome import in_words, outcome_of, without_shepherd
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.model import Quality, Status
from jobmeter.record.read import figure_value, requested
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import Figure, Record

Part = tuple[HeadlineFigure, SummaryPart, "Figure"]
"""A row of the table of headline figures, how it is worded, and the figure."""
HANGING = 11
"""Columns from the start of the name of a line to its content."""


def summary_lines(record: Record, journal: str | None) -> list[str]:
    """The summary of a run, one subject per line."""
    ending = in_words(outcome_of(record))
    lines = [f"jobmeter: {record['name']} {ending} after {text(record['wall_seconds'], 'seconds')}"]
    rows = [
        *_figures(record),
        *_requests(record),
        ("left", _left(record)),
        ("note", without_shepherd(record)),
        ("record", f"{record['id']}  {journal}" if journal else ""),
    ]
    lines += [f"  {name:<{HANGING}}{content}" for name, content in rows if content]
    return lines


def _figures(record: Record) -> Iterator[tuple[str, str]]:
    """A line for each subject, with its figures in the order of the table."""
    lines: dict[str, list[Part]] = {}
    for row in HEADLINE:
        figure = record["usage"].get(row.name)
        if figure is not None and row.summary is not None and not _is_the_mean(row, record):
            lines.setdefault(row.summary.line, []).append((row, row.summary, figure))
    for name, parts in lines.items():
        yield name, _tagged(parts, requested(record))


def _requests(record: Record) -> list[tuple[str, str]]:
    """The lines about resources of which the run requested too little or too much."""
    if not record["requirement"]:
        return []
    from jobmeter.report.requests import request_lines

    return request_lines(record)


def _is_the_mean(row: HeadlineFigure, record: Record) -> bool:
    """Whether the row is a CPU peak that is only the mean: the job was too short for a rate."""
    peak = figure_value(record, "cpu_peak_percent")
    return row.name == "cpu_peak_percent" and peak == figure_value(record, "cpu_mean_percent")


def _tagged(parts: list[Part], requirement: Mapping[str, float]) -> str:
    """Figures in words, with their quality and source; neighbours that share these have one tag: `[exact, cgroup]`."""
    line = ""
    for number, part in enumerate(parts):
        following = _tag(parts[number + 1]) if number + 1 < len(parts) else ""
        line += (", " if line else "") + _words(part, requirement)
        if (tag := _tag(part)) != following:
            line += tag
    return line


def _tag(part: Part) -> str:
    _, summary, figure = part
    return f" [{figure['quality']}, {figure['from'].partition('_')[0]}]" if summary.names_source else ""


def _words(part: Part, requirement: Mapping[str, float]) -> str:
    row, summary, figure = part
    form = summary.at_least if figure["quality"] == Quality.AT_LEAST.value else summary.words
    words = form.format(text(figure["value"], row.unit))
    requested = requested_amount(row, requirement)
    if summary.shows_share and requested:
        amount = _cpus(requested / 100) if row.unit == "percent" else text(requested, row.unit)
        words += f", {100 * figure['value'] / requested:.0f} % of the {amount} requested"
    return words


def _cpus(count: float) -> str:
    return f"{text(count, 'count')} CPU{'s' * (count != 1)}"


def _left(record: Record) -> str:
    count = record["provenance"].get("left_running", 0)
    if not count or record["outcome"]["status"] == Status.DETACHED:
        return ""
    who = "1 process still runs and was" if count == 1 else f"{count} processes still run and were"
    return f"{who} left alone; --orphans wait measures to the end"
