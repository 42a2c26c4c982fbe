"""Compare two runs, or two groups of runs: what changed, by how much, and whether it can be chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.analyse.permutation import CONFIDENCE, evidence
from jobmeter.units import text, without_unit


class ComparedFigure(NamedTuple):
    """A headline figure, and whether more of it is worse."""

    key: str
    name: str  # as in headings
    unit: str
    worse: bool  # more is worse; False: neither more nor less is better


MEASURES = (
    ComparedFigure("wall_seconds", "wall", "seconds", True),
    *(
        ComparedFigure(figure.name, without_unit(figure.name), figure.unit, figure.is_cost)
        for figure in HEADLINE
        if figure.in_compare
    ),
)


class Difference(NamedTuple):
    """One measure of A and of B; for groups, the means."""

    measure: ComparedFigure
    runs: tuple[int, int]
    a: float
    b: float
    ratio: float | None  # None: A is zero
    p: float | None  # None: too few runs to test
    interval: tuple[float, float] | None  # of the ratio
    verdict: str  # regression improvement change small none untested

    @property
    def difference(self) -> float:
        return self.b - self.a

    def as_json(self) -> dict[str, Any]:
        """As JSON; unknown values are absent."""
        entry = {
            "key": self.measure.key,
            "unit": self.measure.unit,
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "ratio": self.ratio,
            "p": self.p,
            "interval": None if self.interval is None else list(self.interval),
            "verdict": self.verdict,
            "words": in_words(self),
        }
        return {name: value for name, value in entry.items() if value is not None}


def compare(
    a: Sequence[Mapping[str, Any]],
    b: Sequence[Mapping[str, Any]],
    threshold: float = 0.05,
    measures: Sequence[ComparedFigure] = MEASURES,
) -> list[Difference]:
    """Compare B with A in every measure that runs of both have. A change below the share `threshold` is small."""
    differences = []
    for measure in measures:
        before = [float(run[measure.key]) for run in a if run.get(measure.key) is not None]
        after = [float(run[measure.key]) for run in b if run.get(measure.key) is not None]
        if before and after:
            differences.append(_difference(measure, before, after, threshold))
    return differences


def _difference(measure: ComparedFigure, before: list[float], after: list[float], threshold: float) -> Difference:
    a, b = fmean(before), fmean(after)
    ratio = b / a if a > 0 else None
    proof = evidence(before, after)
    if proof is None:
        verdict = "untested"
    elif proof.p > 1 - CONFIDENCE:
        verdict = "none"
    elif ratio is not None and abs(ratio - 1) < threshold:
        verdict = "small"
    elif not measure.worse:
        verdict = "change"
    else:
        verdict = "regression" if b > a else "improvement"
    p, interval = (proof.p, proof.interval) if proof else (None, None)
    return Difference(measure, (len(before), len(after)), a, b, ratio, p, interval, verdict)


def in_words(difference: Difference) -> str:
    """One sentence: `memory_peak rose by 31 % (95 % interval 25 to 37 %, p < 0.001): a regression`."""
    name, verdict = difference.measure.name, difference.verdict
    if difference.difference == 0:
        return f"{name}: the same"
    if verdict == "none":
        return f"{name}: no significant difference ({_change(difference)}, {_proof(difference)})"
    sentence = f"{name} {'rose' if difference.difference > 0 else 'fell'} by {_amount(difference)}"
    if verdict == "untested":
        return f"{sentence} ({_too_few(difference.runs)})"
    ending = {"regression": ": a regression", "improvement": ": an improvement", "small": ": real, but small"}
    return f"{sentence} ({_proof(difference)}){ending.get(verdict, '')}"


def _amount(difference: Difference) -> str:
    if difference.ratio is None:
        return text(abs(difference.difference), difference.measure.unit)
    return f"{_digits(abs(difference.ratio - 1))} %"


def _change(difference: Difference) -> str:
    if difference.ratio is None:
        return text(difference.difference, difference.measure.unit)
    return f"{'+' if difference.ratio >= 1 else '-'}{_digits(abs(difference.ratio - 1))} %"


def _proof(difference: Difference) -> str:
    parts = []
    if difference.interval is not None:
        low, high = difference.interval
        # A fall is reported as a fall: "fell by 20 % (15 to 25 %)".
        fell = difference.verdict != "none" and difference.difference < 0
        ends = (1 - high, 1 - low) if fell else (low - 1, high - 1)
        parts.append(f"{CONFIDENCE:.0%} interval ".replace("%", " %") + " to ".join(map(_signed, ends)) + " %")
    p = difference.p
    if p is not None:
        parts.append("p < 0.001" if p < 0.001 else f"p = {p:.2g}")
    return ", ".join(parts)


def _signed(share: float) -> str:
    return f"-{_digits(-share)}" if share < 0 and _digits(-share) != "0" else _digits(abs(share))


def _digits(share: float) -> str:
    """A share in percent: a whole number from 10 on, at most one decimal below."""
    percent = 100 * share
    return f"{percent:,.0f}" if percent >= 9.95 else f"{percent:.1f}".removesuffix(".0")


def _too_few(runs: tuple[int, int]) -> str:
    if runs == (1, 1):
        return "one run each: it may be chance"
    return f"{runs[0]} and {runs[1]} runs are too few to rule out chance; use 4 of each or more"
