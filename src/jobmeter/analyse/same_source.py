"""Figures from one source on both sides, for runs measured in different ways: others cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.record.read import figures, measured

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_SOURCES = {
    figure.name: (figure.statistic, figure.sources)
    for figure in HEADLINE
    if figure.in_compare and figure.statistic in ("total", "peak")
}
"""Headline figure → its statistic, and the measurements it can be taken from, the best first."""
_LITTLE_CACHE = 0.02

FIGURES = tuple(_SOURCES)


class SameSource(NamedTuple):
    """The values of one figure, one per run, all from one source."""

    source: str
    a: list[float]
    b: list[float]


class NoCommonSource(NamedTuple):
    a: str  # the sources of the figure on side A
    b: str


def from_same_source(a: Sequence[Record], b: Sequence[Record], figure: str) -> SameSource | NoCommonSource | None:
    """The values of a figure on both sides, from one measurement; None if a side does not have the figure at all."""
    sources_a, sources_b = _sources(a, figure), _sources(b, figure)
    if not sources_a or not sources_b:
        return None
    everyone = [*a, *b]
    field, keys = _SOURCES[figure]
    for key in keys:
        if all(field in measured(record, key) for record in everyone) and _is_comparable(key, everyone):
            values = [[float(measured(record, key)[field]) for record in side] for side in (a, b)]
            return SameSource(key, *values)
    return NoCommonSource(", ".join(sources_a), ", ".join(sources_b))


def comparable_values(record: Record, figure: str) -> dict[str, float]:
    """A figure of one run by each comparable measurement, the best first: to compare with runs that come later."""
    field, keys = _SOURCES[figure]
    return {
        key: float(measured(record, key)[field])
        for key in keys
        if field in measured(record, key) and _is_comparable(key, [record])
    }


def _sources(records: Sequence[Record], figure: str) -> list[str]:
    return sorted({figures(record)[figure]["from"] for record in records if figure in figures(record)})


def _is_comparable(key: str, records: Sequence[Record]) -> bool:
    """Whether the values of this measurement can be compared across these runs.

    The peak of a cgroup counts page cache, which is charged to the first reader of a file: there must be hardly any.
    perf may have been stopped early.
    """
    if key.startswith("perf_"):
        return not any(
            "failed" in record.get("provenance", {}).get("collectors", {}).get("perf", {}) for record in records
        )
    if key != "cgroup_mem_peak":
        return True
    cached = [measured(record, "cgroup_file").get("peak") for record in records]
    peaks = [measured(record, key)["peak"] for record in records]
    return all(cache is not None and cache <= _LITTLE_CACHE * peak for cache, peak in zip(cached, peaks))
