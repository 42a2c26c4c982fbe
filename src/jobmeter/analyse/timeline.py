"""What windows say: of CPU, memory and processes over time, and of a run that has no record yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jobmeter.analyse.headline import CPU_PERCENT, CPU_SECONDS, MEMORY_MEAN, PROCESSES, Described, Summary
from jobmeter.model import Gauge, Kind

_COUNTERS = tuple(key for key in CPU_SECONDS if not key.startswith("rusage_"))
"""rusage reports everything at the end: in its window it would be a rate that never was."""
_MOST_LABELS = 20
_MORE, _TICK = 1.05, 0.05
"""CPU time that is more than this, times and plus another, is not the same: counters of /proc lag behind by ticks."""
_SHORTEST = 0.1
"""Seconds of a window below which its CPU time makes no rate: clocks and counters are read one after the other."""


class WindowSample(NamedTuple):
    """One window, for a curve. None is not measured."""

    seconds: float  # since the start of the run, at the window's end
    cpu_percent: float | None  # the mean over the window; 100 is one core
    memory_bytes: float | None  # the most that could not be reclaimed
    processes: float | None  # the most at a time


class Sampler:
    """Takes samples out of windows that have these columns, by the preference of the headline figures."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._counter = _first(columns, _COUNTERS)
        # perf may have been stopped in the middle of a window.
        may_be_partial = self._counter is not None and columns[self._counter].startswith("perf_")
        self._other = _first(
            columns, [key for key in _COUNTERS if not key.startswith("perf_")] if may_be_partial else []
        )
        self._percent = _first(columns, CPU_PERCENT)
        self._memory = _first(columns, MEMORY_MEAN)
        self._processes = _first(columns, PROCESSES)

    def take(self, seconds: float, lasted: float, values: Sequence[Any]) -> WindowSample:
        """The sample of a window that ended at `seconds` and lasted so long; `values` in the order of the columns."""
        cpu = memory = processes = None
        if 0 < lasted < _SHORTEST and lasted < seconds:
            pass  # the last window may be a moment long, too short for a rate
        elif self._counter is not None and lasted > 0:
            used = values[self._counter]
            if self._other is not None and values[self._other] > used * _MORE + _TICK:
                used = values[self._other]
            cpu = round(100 * used / lasted, 2)
        elif self._percent is not None:
            cpu = level(values[self._percent])[1]
        if self._memory is not None:
            memory = values[self._memory]
            memory = memory[0] if type(memory) is list else memory
        if self._processes is not None:
            processes = values[self._processes]
            processes = processes[0] if type(processes) is list else processes
        return WindowSample(seconds, cpu, memory, processes)


def samples(windows: Iterable[tuple[float, Mapping[str, Any]]]) -> list[WindowSample]:
    """The samples of a run, from `(seconds, cells)` of its windows."""
    taken, before = [], 0.0
    for seconds, cells in windows:
        taken.append(Sampler(list(cells)).take(seconds, seconds - before, list(cells.values())))
        before = seconds
    return taken


def level(cell: Any) -> tuple[float, float]:
    """Peak and mean of a gauge's cell: `[peak, mean]`, or one number where the level did not move."""
    return (cell[0], cell[1]) if isinstance(cell, list) else (cell, cell)


def _first(columns: Sequence[str], keys: Sequence[str]) -> int | None:
    return next((columns.index(key) for key in keys if key in columns), None)


def summarise(windows: Iterable[tuple[float, Mapping[str, Any]]], described: Described) -> Summary:
    """The `measurements` of a record, from `(seconds, cells)` of windows alone; they keep no p95 and no minimum."""
    summary: Summary = {}
    weights: dict[str, float] = {}
    before = 0.0
    for seconds, cells in windows:
        lasted, before = max(seconds - before, 0.0), seconds
        for key, cell in cells.items():
            about = described.get(key)
            if about is None or cell is None:
                continue
            entry = summary.setdefault(key, {"unit": about["unit"], "kind": about["kind"]})
            weights[key] = weights.get(key, 0.0) + lasted
            _add(entry, about, cell, lasted / weights[key] if weights[key] else 1.0)
    return summary


def _add(entry: dict[str, Any], about: Mapping[str, str], cell: Any, share: float) -> None:
    """Add a window that is this share of all so far."""
    kind = about["kind"]
    if kind == Kind.GAUGE.value:
        peak, mean = level(cell)
        entry["peak"] = max(peak, entry.get("peak", peak))
        if about.get("gauge") == Gauge.MARK.value:
            return
        so_far = entry.get("mean", mean)
        entry["mean"] = round(so_far + (mean - so_far) * share, 6 if entry["unit"] != "bytes" else None)
    elif kind == Kind.COUNTER.value:
        entry["total"] = round(entry.get("total", 0) + cell, 6)
    elif kind == Kind.LABEL.value:
        entry["last"] = cell
        distinct = entry.setdefault("distinct", [])
        if cell not in distinct and len(distinct) < _MOST_LABELS:
            distinct.append(cell)
    else:
        shares = entry.setdefault("share", {})
        for name in {*shares, *cell}:
            so_far = shares.get(name, 0.0)
            shares[name] = round(so_far + (cell.get(name, 0.0) - so_far) * share, 3)
