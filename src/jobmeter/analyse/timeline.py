"""What follows from windows: CPU, memory and processes over time, and the summary of a run without a record yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from jobmeter.analyse.headline import CPU_PERCENT, CPU_SECONDS, PROCESSES, Described, Summary
from jobmeter.analyse.headline_memory import MEMORY_MEAN
from jobmeter.light_typing import Any, NamedTuple
from jobmeter.model import Gauge, Kind

_COUNTERS = tuple(key for key in CPU_SECONDS if not key.startswith("rusage_"))
"""Without rusage, which reports everything at the end: its window would show a rate that never was."""
_MOST_LABELS = 20
_MORE, _TICK = 1.05, 0.05
"""CPU time of one source is more than that of another only if it is above `_MORE` times that plus `_TICK` seconds:
counters of /proc lag behind by ticks."""
_SHORTEST = 0.1
"""Seconds. CPU time over a shorter window is no rate: clocks and counters are read one after the other."""


Counters = dict[str, tuple[float, float]]
"""For each counter of a run: the end of the last window that gave a rate, and the growth since then."""
_NEVER = (0.0, 0.0)


class WindowSample(NamedTuple):
    """One window, as a point of curves. None: not measured."""

    seconds: float  # since the start of the run, at the window's end
    cpu_percent: float | None  # the mean over the window; 100 is one core
    memory_bytes: float | None  # the most that could not be reclaimed
    processes: float | None  # the most at a time


_new_sample: Callable[[tuple[Any, ...]], WindowSample] = partial(tuple.__new__, WindowSample)
"""A sample from its fields in order. A journal has one a line, and the constructor takes half as long again."""


class Sampler:
    """Takes samples from windows that have these columns, by the order of sources of the headline figures."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._counter = _first(columns, _COUNTERS)
        # perf may have been stopped in the middle of a window.
        may_be_partial = self._counter is not None and columns[self._counter].startswith("perf_")
        self._other = _first(
            columns, [key for key in _COUNTERS if not key.startswith("perf_")] if may_be_partial else []
        )
        self._counter_key = "" if self._counter is None else columns[self._counter]
        self._other_key = "" if self._other is None else columns[self._other]
        self._percent = _first(columns, CPU_PERCENT)
        self._memory = _first(columns, MEMORY_MEAN)
        self._processes = _first(columns, PROCESSES)

    def take(self, seconds: float, counters: Counters, values: Sequence[Any]) -> WindowSample:
        """The sample of a window that ended at `seconds`; `values` are in the order of the columns.

        `counters` is the state of the run, updated here: fine windows are too short for a rate, and have only the
        counters that are read often.
        """
        cpu = memory = processes = None
        counter, key = self._counter, self._counter_key
        if counter is not None:
            since, before = counters.get(key, _NEVER)
            used, lasted = before + values[counter], seconds - since
            if self._other is not None:
                # Both cover the same time only if both were in the window before.
                since_other, before = counters.get(self._other_key, _NEVER)
                other = before + values[self._other] if since_other == since else 0.0
                counters[self._other_key] = (seconds, 0.0)
                used = other if other > used * _MORE + _TICK else used
            if lasted >= _SHORTEST or lasted == seconds > 0:
                cpu = round(100 * used / lasted, 2)
                counters[key] = (seconds, 0.0)
            else:
                counters[key] = (since, used)
        elif self._percent is not None:
            cpu = level(values[self._percent])[1]
        if self._memory is not None:
            memory = values[self._memory]
            memory = memory[0] if type(memory) is list else memory
        if self._processes is not None:
            processes = values[self._processes]
            processes = processes[0] if type(processes) is list else processes
        return _new_sample((seconds, cpu, memory, processes))


def samples(windows: Iterable[tuple[float, Mapping[str, Any]]]) -> list[WindowSample]:
    """The samples of a run, from `(seconds, cells)` of its windows."""
    taken: list[WindowSample] = []
    samplers: dict[tuple[str, ...], Sampler] = {}
    counters: Counters = {}
    for seconds, cells in windows:
        numbers = {key: cell for key, cell in cells.items() if _is_numeric(cell)}
        columns = tuple(numbers)
        if columns not in samplers:
            samplers[columns] = Sampler(columns)
        try:
            taken.append(samplers[columns].take(seconds, counters, list(numbers.values())))
        except TypeError:
            taken.append(WindowSample(seconds, None, None, None))  # a counter with two values
    return taken


def highest_in_shares(points: Sequence[tuple[float, float]], count: int, end: float) -> list[float]:
    """The highest value in each of `count` equal shares of the time until `end`.

    A value holds from the previous point to its own, and the last one to the end.
    """
    shares: list[float] = []
    index = 0
    for number in range(1, count + 1):
        until = end * number / count
        first = index
        while index < len(points) - 1 and points[index][0] < until:
            index += 1
        shares.append(max(value for _, value in points[first : index + 1]))
    return shares


def _is_numeric(cell: Any) -> bool:
    """Whether the cell is of a gauge or a counter. If the run does not describe its key, the cell may be anything."""
    parts = cell if isinstance(cell, list) and len(cell) == 2 else [cell]
    return all(isinstance(part, (int, float)) for part in parts)


def level(cell: Any) -> tuple[float, float]:
    """Peak and mean of a gauge's cell: `[peak, mean]`, or one number where the level did not move."""
    return (cell[0], cell[1]) if isinstance(cell, list) else (cell, cell)


def _first(columns: Sequence[str], keys: Sequence[str]) -> int | None:
    return next((columns.index(key) for key in keys if key in columns), None)


def summarise(windows: Iterable[tuple[float, Mapping[str, Any]]], described: Described) -> Summary:
    """The `measurements` of a record, from `(seconds, cells)` of windows alone; windows keep no p95 and no minimum."""
    summary: Summary = {}
    covered: dict[str, float] = {}  # key → the end of the last window that has it
    for seconds, cells in windows:
        for key, cell in cells.items():
            about = described.get(key)
            if about is None or cell is None:
                continue
            entry = summary.setdefault(key, {"unit": about["unit"], "kind": about["kind"]})
            lasted = max(seconds - covered.get(key, 0.0), 0.0)
            covered[key] = seconds
            _add(entry, about, cell, lasted / seconds if seconds else 1.0)
    return summary


def _add(entry: dict[str, Any], about: Mapping[str, str], cell: Any, share: float) -> None:
    """Add the cell of a window to the entry; `share` is the part of the time so far that the window covers."""
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
