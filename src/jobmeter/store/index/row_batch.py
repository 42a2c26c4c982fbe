"""Rows of the index on their way into it, column by column: quick to send between processes, and to insert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jobmeter.store.index.extract import COLUMNS

FULL = 1000
"""Runs in a batch."""
FULL_OF_SAMPLES = 50_000
"""Samples that fill a batch, of however few runs: memory stays bounded."""


class RowBatch(NamedTuple):
    """Some runs, with their samples."""

    size: int  # how many runs
    columns: dict[str, tuple[Any, ...]]  # of `job_metadata`, without those in which no run has a value
    samples: tuple[Any, ...]  # the columns of `window_samples`, for the number the run's position in this batch


class RowCollector:
    """Collects runs for a batch."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._positions: list[int] = []
        self._windows: list[int] = []
        self._samples: list[Sequence[Any]] = []

    @property
    def is_full(self) -> bool:
        return len(self._rows) >= FULL or len(self._samples) >= FULL_OF_SAMPLES

    def add(self, row: tuple[Any, ...], samples: Sequence[Sequence[Any]]) -> None:
        """Add the values of `COLUMNS` and the samples of a run."""
        self._positions += [len(self._rows)] * len(samples)
        self._windows += range(len(samples))
        self._samples += samples
        self._rows.append(row)

    def take(self) -> RowBatch:
        """What was collected since the last time."""
        # Most runs have no figures of GPUs and the like, and to insert a column takes time whether it is empty or not.
        columns = {
            name: values
            for name, values in zip(COLUMNS, zip(*self._rows))
            if values[0] is not None or values.count(None) < len(values)
        }
        batch = RowBatch(len(self._rows), columns, (self._positions, self._windows, *zip(*self._samples)))
        self._clear()
        return batch
