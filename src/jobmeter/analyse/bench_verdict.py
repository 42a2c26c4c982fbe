"""Whether a benchmark is worse than its baseline. Pure functions.

Every figure of every variant is tested, and each test alone would report a difference by chance once in twenty times.
So the p-values are corrected for their number (Holm 1979, Scand. J. Stat. 6, 65): at most one benchmark in twenty
reports any regression by chance alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobmeter.analyse.bench import BenchRun
from jobmeter.analyse.compare import ComparedFigure, Difference, compare
from jobmeter.analyse.permutation import CONFIDENCE


class Judged(NamedTuple):
    """One figure of one variant, compared with the baseline."""

    variant: str
    difference: Difference
    is_regression: bool


class NotCompared(NamedTuple):
    variant: str
    measure: ComparedFigure
    why: str


class BenchVerdict(NamedTuple):
    judged: list[Judged]
    not_compared: list[NotCompared]
    missing: list[str]  # variants that the baseline does not have

    @property
    def regressions(self) -> list[Judged]:
        return [each for each in self.judged if each.is_regression]


def judge(
    baseline: Mapping[str, Sequence[BenchRun]],
    present: Mapping[str, Sequence[BenchRun]],
    tolerance: float,
    measures: Sequence[ComparedFigure],
) -> BenchVerdict:
    """Compare variants of the same name. A regression is significant, and larger than the tolerance (a share)."""
    differences: list[tuple[str, Difference]] = []
    not_compared: list[NotCompared] = []
    for variant, runs in present.items():
        if variant not in baseline:
            continue
        for measure in measures:
            values = common_values([baseline[variant], runs], measure.key)
            if isinstance(values, str):
                not_compared.append(NotCompared(variant, measure, values))
                continue
            before, after = ([{measure.key: value} for value in side] for side in values)
            differences += [(variant, each) for each in compare(before, after, tolerance, [measure])]
    significant = holm([1.0 if each.p is None else each.p for _, each in differences])
    judged = [
        Judged(variant, each, each.verdict == "regression" and is_significant)
        for (variant, each), is_significant in zip(differences, significant)
    ]
    return BenchVerdict(judged, not_compared, [variant for variant in present if variant not in baseline])


def common_values(sides: Sequence[Sequence[BenchRun]], key: str) -> list[list[float]] | str:
    """The values of a figure in the runs of each side, all from one source; else the reason why there are none.

    The best source of a figure may differ from run to run: the peak of a cgroup counts page cache, which only the
    first run of a program may have.
    """
    figures = [[run.figures.get(key) for run in side] for side in sides]
    measured = [[figure for figure in side if figure is not None] for side in figures]
    if any(len(some) < len(side) or not side for some, side in zip(measured, figures)):
        return "not every run has it"
    sources = sorted({figure.source for side in measured for figure in side})
    if len(sources) == 1:
        return [[figure.value for figure in side] for side in measured]
    for source in measured[0][0].sources:
        if all(source in figure.sources for side in measured for figure in side):
            return [[figure.sources[source] for figure in side] for side in measured]
    return f"it is from {' and '.join(sources)}, and no source has it in all runs"


def holm(ps: Sequence[float]) -> list[bool]:
    """Which of these p-values are significant after the Holm correction for their number."""
    significant = [False] * len(ps)
    for done, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        if ps[place] * (len(ps) - done) > 1 - CONFIDENCE:
            break
        significant[place] = True
    return significant
