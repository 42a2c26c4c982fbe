"""What Python programs get: runs with their figures, and how they went over time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.errors import UsageError
from jobmeter.light_typing import TYPE_CHECKING, Any, NamedTuple
from jobmeter.model import Quality, Status
from jobmeter.record.read import figure_value, figures, measured
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_UNITS = {figure.name: figure.unit for figure in HEADLINE}

Windows = Callable[[], Sequence[tuple[float, Mapping[str, Any]]]]
"""The windows of a run, when they are needed: seconds since the start at the end of each, and its cells."""


class Figure(NamedTuple):
    """A headline figure: its value, the measurement it is taken from, and how far to trust it."""

    value: float
    source: str
    quality: Quality
    unit: str

    def __str__(self) -> str:
        words = text(self.value, self.unit)
        return f"at least {words}" if self.quality is Quality.AT_LEAST else words


class Usage:
    """The headline figures of a run, each a `Figure`, or None when it was not measured."""

    cpu_seconds: Figure | None
    cpu_mean_percent: Figure | None
    cpu_peak_percent: Figure | None
    memory_peak_bytes: Figure | None
    memory_mean_bytes: Figure | None
    memory_min_bytes: Figure | None
    read_bytes: Figure | None
    write_bytes: Figure | None
    processes_peak: Figure | None

    def __init__(self, record: Record) -> None:
        self._figures = {
            name: Figure(figure["value"], figure["from"], Quality(figure["quality"]), _UNITS.get(name, "count"))
            for name, figure in figures(record).items()
        }

    def __getattr__(self, name: str) -> Figure | None:
        if name in _UNITS or name in self._figures:
            return self._figures.get(name)
        from jobmeter.suggestion import suggest

        raise AttributeError(f"there is no headline figure {name!r}. {suggest(name, _UNITS)}")

    def __iter__(self) -> Iterator[str]:
        """The names of those that were measured."""
        return iter(self._figures)

    def __getitem__(self, name: str) -> Figure:
        return self._figures[name]

    def __dir__(self) -> list[str]:
        return [*_UNITS]

    def __repr__(self) -> str:
        return f"<Usage {', '.join(f'{name}={figure}' for name, figure in self._figures.items())}>"


class Run:
    """A run: its record, its headline figures, and how it went over time."""

    def __init__(self, record: Record, windows: Windows = tuple) -> None:
        self.record = record
        self._windows = windows
        self._usage: Usage | None = None

    @property
    def id(self) -> str:
        return self.record["id"]

    @property
    def name(self) -> str:
        return self.record["name"]

    @property
    def labels(self) -> dict[str, str]:
        return self.record["labels"]

    @property
    def status(self) -> Status:
        """How it ended; a text, too: `run.status == "completed"`."""
        return Status(self.record["outcome"]["status"])

    @property
    def exit_code(self) -> int | None:
        """The job's exit code; None when a signal or an exception ended it."""
        return self.record["outcome"]["exit_code"]

    @property
    def wall_seconds(self) -> float:
        return self.record["wall_seconds"]

    @property
    def usage(self) -> Usage:
        """The headline figures with source and quality: `run.usage.cpu_seconds.value`."""
        if self._usage is None:
            self._usage = Usage(self.record)
        return self._usage

    @property
    def cpu_seconds(self) -> float | None:
        return self.figure("cpu_seconds")

    @property
    def memory_peak_bytes(self) -> float | None:
        return self.figure("memory_peak_bytes")

    def figure(self, name: str) -> float | None:
        """The value of a headline figure; None when it was not measured."""
        return figure_value(self.record, name)

    def measured(self, key: str) -> Mapping[str, Any]:
        """The summary of one measurement, as `{"unit": "bytes", "kind": "gauge", "peak": …}`; empty if not measured."""
        return measured(self.record, key)

    def series(self, keys: Sequence[str] | None = None, *, peak: bool = False) -> dict[str, list[Any]]:
        """Measurements over time: a list for each key, and `seconds` since the start, at the end of each window.

        Without keys: all. Of a gauge each value is the mean of the window, or its `peak`; of a counter how much it
        grew; None where it was not measured. A run that was over before its first window has empty lists.
        """
        windows = list(self._windows())
        window_keys = list(dict.fromkeys(key for _, cells in windows for key in cells))
        for key in keys or ():
            if key not in window_keys and not self.measured(key):
                from jobmeter.suggestion import suggest

                raise UsageError(
                    f"run {self.id} has no measurement {key!r}. {suggest(key, self.record['measurements'])}"
                )
        columns: dict[str, list[Any]] = {"seconds": [seconds for seconds, _ in windows]}
        for key in window_keys if keys is None else keys:
            columns[key] = [_value(cells.get(key), peak=peak) for _, cells in windows]
        return columns

    def to_pandas(self, keys: Sequence[str] | None = None) -> Any:
        """The series as a pandas DataFrame, indexed by `seconds`. UsageError when pandas is not installed."""
        return _package("pandas").DataFrame(self.series(keys)).set_index("seconds")

    def to_polars(self, keys: Sequence[str] | None = None) -> Any:
        """The series as a polars DataFrame. UsageError when polars is not installed."""
        return _package("polars").DataFrame(self.series(keys))

    def _repr_html_(self) -> str:
        """For notebooks: the figures, and memory and CPU over time."""
        from jobmeter.report.card import card

        return card(self.record, list(self._windows()))

    def __repr__(self) -> str:
        figures = f"{self.usage.cpu_seconds or '?'} CPU, {self.usage.memory_peak_bytes or '?'} memory"
        return f"<Run {self.id} {self.name} {self.status}, {figures}>"


def stored_windows(path: str | None, run_id: str) -> Windows:
    """The windows of a run in this journal; none when it was not stored."""

    def read() -> list[tuple[float, Mapping[str, Any]]]:
        if path is None or not os.path.exists(path):
            return []
        from jobmeter.journal.reader import RunLocation, read_journal

        return [(window.seconds, window.cells) for window in read_journal(path, RunLocation(run_id)).windows]

    return read


def _value(cell: Any, *, peak: bool) -> Any:
    return cell[0 if peak else 1] if isinstance(cell, list) and len(cell) == 2 else cell


def _package(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise UsageError(f"{name} is not installed. Install it: pip install {name}") from None
