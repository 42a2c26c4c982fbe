"""A benchmark as lines of text."""

from __future__ import annotations

from jobmeter.analyse.bench import BENCH_MEASURES, Spread
from jobmeter.analyse.bench_result import BenchResult, VariantResult
from jobmeter.analyse.bench_verdict import BenchVerdict, Judged
from jobmeter.analyse.compare import ComparedFigure, in_words
from jobmeter.report.table import plain_lines
from jobmeter.report.table_layout import Column, Layout, lay_out
from jobmeter.terminal import printable
from jobmeter.units import text

_INDENT = "  "
_NAMED = 3  # outliers whose figures are shown
_COLUMNS = (
    Column("", essential=True),
    Column("median", "count", essential=True),
    Column("spread", "count"),
    Column("95 % interval"),
    Column("range"),
)
_SUMMARY = ("wall_seconds", "cpu_seconds", "memory_peak_bytes")


def figure_text(value: float, measure: ComparedFigure, *, at_least: bool = False) -> str:
    return ("≥ " if at_least else "") + text(value, measure.unit)


def range_text(ends: tuple[float, float] | None, measure: ComparedFigure) -> str:
    if ends is None:
        return ""
    low, high = (text(end, measure.unit) for end in ends)
    return low if low == high else f"{low} to {high}"


def percent_text(share: float) -> str:
    return f"{100 * share:.0f} %"


def layout_of(variant: VariantResult, width: int | None = None) -> Layout:
    """The table of one variant, laid out for this width."""
    spreads = variant.spreads()
    rows = [_row(spreads[measure.key], measure) for measure in BENCH_MEASURES if measure.key in spreads]
    return lay_out(_COLUMNS, rows, None if width is None else width - len(_INDENT))


def variant_lines(variant: VariantResult, width: int | None = None) -> list[str]:
    """One variant: its name, its figures, and remarks on its runs."""
    runs = len(variant.runs)
    command = "" if variant.name == variant.command else f": {variant.command}"
    return [
        printable(f"{variant.name}{command}  ({runs} run{'s' * (runs != 1)})"),
        *(f"{_INDENT}{line}" for line in plain_lines(layout_of(variant, width))),
        *(f"{_INDENT}{line}" for line in remarks(variant)),
    ]


def _row(spread: Spread, measure: ComparedFigure) -> list[str]:
    return [
        measure.name,
        figure_text(spread.median, measure, at_least=spread.at_least),
        text(spread.width, measure.unit),
        range_text(spread.interval, measure),
        range_text((spread.least, spread.most), measure),
    ]


def remarks(variant: VariantResult) -> list[str]:
    """What a reader of the figures must know: failed runs, too few runs, outliers."""
    lines = []
    runs = len(variant.runs)
    if variant.failed:
        lines.append(f"{variant.failed} of {runs} runs failed; their figures are included")
    if all(spread.interval is None for spread in variant.spreads().values()):
        lines.append("too few runs for an interval: it takes 6")
    for measure in BENCH_MEASURES:
        if measure.key in _SUMMARY and (odd := variant.outliers(measure.key)):
            values = ", ".join(text(run.figures[measure.key].value, measure.unit) for run in odd[:_NAMED])
            more = ", …" if len(odd) > _NAMED else ""
            is_first = odd[0] is variant.runs[0] and len(odd) == 1
            cause = "the first run: --warmup 1 leaves it out" if is_first else "was the machine busy?"
            lines.append(f"{len(odd)} of {runs} runs: {measure.name} far from the others ({values}{more}); {cause}")
    return lines


def summary_table(result: BenchResult) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows of the table of all variants."""
    measures = [measure for measure in BENCH_MEASURES if measure.key in _SUMMARY]
    scaled = result.scalings()
    efficient = any(scaling is not None and scaling.efficiency is not None for scaling in scaled)
    columns = [
        Column("variant", essential=True, shortens=True),
        *(Column(measure.name, "count", essential=True) for measure in measures),
        *([Column("speed-up", "count")] if scaled else []),
        *([Column("efficiency", "count")] * efficient),
    ]
    rows = []
    for place, variant in enumerate(result.variants):
        spreads = variant.spreads()
        row = [variant.name]
        for measure in measures:
            spread = spreads.get(measure.key)
            row.append("" if spread is None else figure_text(spread.median, measure, at_least=spread.at_least))
        if scaled:
            scaling = scaled[place]
            row.append("" if scaling is None else f"{scaling.speed_up:.2f}")
            if efficient:
                row.append("" if scaling is None or scaling.efficiency is None else percent_text(scaling.efficiency))
        rows.append(row)
    return columns, rows


def verdict_lines(verdict: BenchVerdict, baseline: str, tolerance: float) -> list[str]:
    """The result of a comparison with a baseline."""
    several = len({each.variant for each in verdict.judged}) > 1
    lines = [_judged_text(each, several=several) for each in verdict.judged]
    lines += [f"{each.variant}: {each.measure.name} cannot be compared: {each.why}" for each in verdict.not_compared]
    lines += [f"{variant}: the baseline does not have it" for variant in verdict.missing]
    if regressions := verdict.regressions:
        count = f"{len(regressions)} regression{'s' * (len(regressions) > 1)}"
        lines.append(f"{count} against {baseline}, beyond {100 * tolerance:g} %")
    elif verdict.judged:
        lines.append(f"no regression against {baseline} beyond {100 * tolerance:g} %")
    return lines


def _judged_text(judged: Judged, *, several: bool) -> str:
    words = in_words(judged.difference)
    if judged.difference.verdict == "regression" and not judged.is_regression:
        words = (
            words.removesuffix(": a regression")
            + ": not significant, given how many figures are compared; use more --runs"
        )
    return f"{judged.variant}: {words}" if several else words


def all_lines(result: BenchResult, width: int | None = None) -> list[str]:
    """Every variant, with an empty line between two, for a terminal of this width; None: for a pipe."""
    lines: list[str] = []
    for variant in result.variants:
        lines += [*([""] if lines else []), *variant_lines(variant, width)]
    return lines
