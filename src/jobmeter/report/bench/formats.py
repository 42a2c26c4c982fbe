"""A benchmark as a file: Markdown, JSON, CSV or a page, by the extension of its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from io import StringIO

from jobmeter.analyse.bench import BENCH_MEASURES
from jobmeter.analyse.bench_result import BenchResult
from jobmeter.byte_text import json_text
from jobmeter.exchange.csv_writer import CsvWriter
from jobmeter.report.bench.text import figure_text, range_text, summary_table


def markdown(result: BenchResult) -> str:
    """A table of medians with their intervals, one row per variant."""
    columns, rows = summary_table(result)
    headings = [column.name for column in columns]
    spreads = [variant.spreads() for variant in result.variants]
    for row, row_spreads in zip(rows, spreads):
        for place, measure in enumerate(BENCH_MEASURES, start=1):
            if place < len(row) and headings[place] == measure.name and measure.key in row_spreads:
                spread = row_spreads[measure.key]
                row[place] = figure_text(spread.median, measure, at_least=spread.at_least)
                if spread.interval is not None:
                    row[place] += f" ({range_text(spread.interval, measure)})"
    lines = [_markdown_row(headings), _markdown_row(["---", *["---:"] * (len(headings) - 1)])]
    lines += [_markdown_row([f"`{row[0]}`", *row[1:]]) for row in rows]
    runs = max((len(variant.runs) for variant in result.variants), default=0)
    lines += ["", f"Medians of {runs} runs, interleaved, with 95 % intervals. Measured by jobmeter on {result.host}."]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def as_json(result: BenchResult) -> str:
    return json_text(result.as_json(), indent=2) + "\n"


def csv(result: BenchResult) -> str:
    """One row per variant, numbers in base units; what was not measured is empty."""
    file = StringIO()
    writer = CsvWriter(file)
    names = list(dict.fromkeys(name for variant in result.variants for name in variant.parameters))
    statistics = ("median", "low", "high", "low_quartile", "high_quartile", "mean", "deviation", "least", "most")
    figures = [f"{measure.key}_{name}" for measure in BENCH_MEASURES for name in statistics]
    writer.writerow(
        [
            "variant",
            "command",
            *(f"parameter_{name}" for name in names),
            "runs",
            "failed",
            "speed_up",
            "efficiency",
            *figures,
        ]
    )
    scaled = result.scalings() or [None] * len(result.variants)
    for variant, scaling in zip(result.variants, scaled):
        row: list[object] = [variant.name, variant.command, *(variant.parameters.get(name, "") for name in names)]
        row += [len(variant.runs), variant.failed]
        row += ["", ""] if scaling is None else [scaling.speed_up, _cell(scaling.efficiency)]
        spreads = variant.spreads()
        for measure in BENCH_MEASURES:
            spread = spreads.get(measure.key)
            if spread is None:
                row += [""] * len(statistics)
                continue
            low, high = spread.interval or (None, None)
            values = (spread.median, low, high, *(getattr(spread, name) for name in statistics[3:]))
            row += [_cell(value) for value in values]
        writer.writerow(row)
    return file.getvalue()


def _cell(value: float | None) -> object:
    return "" if value is None else value


def page(result: BenchResult) -> str:
    from jobmeter.report.bench.page import bench_page  # late: only if a page is wanted

    return bench_page(result)


FORMATS: dict[str, Callable[[BenchResult], str]] = {".md": markdown, ".json": as_json, ".csv": csv, ".html": page}


def format_of(path: str) -> Callable[[BenchResult], str] | None:
    """The function that renders a file of this name; None if its extension is not known."""
    return FORMATS.get(os.path.splitext(path)[1].lower())
