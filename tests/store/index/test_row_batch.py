"""Rows of the index on their way into it."""

from __future__ import annotations

import pytest

from jobmeter.analyse.timeline import WindowSample
from jobmeter.store.index.extract import COLUMNS, row_of
from jobmeter.store.index.row_batch import FULL, FULL_OF_SAMPLES, RowCollector
from tests.runs import record


def samples(count: int) -> list[WindowSample]:
    return [WindowSample(float(number), None, number, 1) for number in range(count)]


def test_a_batch_has_the_columns_that_a_run_has_a_value_in_and_no_others() -> None:
    collector = RowCollector()
    collector.add(row_of(record("a"), 1, 0, 1), [])
    collector.add(row_of(record("b", energy_joules=3.0), 1, 9, 2), [])
    columns = collector.take().columns
    assert (None, 3.0) == columns["energy_joules"]
    assert ("a", "b") == columns["job_id"]
    assert "gpu_seconds" in COLUMNS
    assert "gpu_seconds" not in columns


def test_samples_have_the_position_of_their_run_and_their_own() -> None:
    collector = RowCollector()
    for run_id, count in (("a", 2), ("b", 0), ("c", 1)):
        collector.add(row_of(record(run_id), 1, 0, 1), samples(count))
    positions, windows, *_ = collector.take().samples
    assert [0, 0, 2] == positions
    assert [0, 1, 0] == windows


def test_what_was_taken_is_not_taken_again() -> None:
    collector = RowCollector()
    collector.add(row_of(record("a"), 1, 0, 1), samples(2))
    collector.take()
    assert (0, {}, ([], [])) == collector.take()


@pytest.mark.parametrize(("runs", "each"), [(FULL, 0), (2, FULL_OF_SAMPLES // 2)])
def test_a_batch_is_full_of_many_runs_or_of_many_samples(runs: int, each: int) -> None:
    collector = RowCollector()
    many = samples(each)
    for number in range(runs):
        assert not collector.is_full
        collector.add(row_of(record(f"run{number}"), 1, 0, 1), many)
    assert collector.is_full
