"""Nextflow's trace: for people, raw, and as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.exchange.reading import FIXTURES, figure, named, read, runs, unfinished, unusable, written

PEOPLE = read(FIXTURES / "nextflow_people.txt")
RAW = read(FIXTURES / "nextflow_raw.txt")
TABLE = read(FIXTURES / "nextflow.csv")
HEADER = "task_id\tname\tstatus\trealtime\tpeak_rss\n"


def test_units_for_people_are_read() -> None:
    align = named(PEOPLE, "ALIGN")
    assert 123.0 == align["wall_seconds"]
    assert (round(1.6 * 2**30), "nextflow_peak_rss", "sampled") == figure(align, "memory_peak_bytes")
    assert (round(1.838 * 123, 3), "nextflow_cpu_seconds", "sampled") == figure(align, "cpu_seconds")
    assert (4096, "nextflow_write_bytes", "sampled") == figure(align, "write_bytes")
    assert {"cpus": 2, "memory_bytes": 2 << 30, "runtime_seconds": 3600.0} == align["requirement"]


def test_raw_numbers_are_bytes_and_milliseconds() -> None:
    align = named(RAW, "ALIGN")
    assert (123.0, 1717986918) == (align["wall_seconds"], align["usage"]["memory_peak_bytes"]["value"])
    assert ("2024-05-01T10:00:01.000Z", "2024-05-01T10:02:04.000Z") == (align["started"], align["ended"])
    assert {"cpus": 2, "memory_bytes": 2 << 30, "runtime_seconds": 3600.0} == align["requirement"]


def test_csv_is_read_with_its_quotes() -> None:
    record: Any = runs(TABLE)[0].record
    assert ("sort", "sort (a, b)") == (record["name"], record["labels"]["task"])
    assert (290201600, "nextflow_peak_rss", "sampled") == figure(record, "memory_peak_bytes")
    assert {"cpus": 1, "memory_bytes": 524288000} == record["requirement"]
    assert 30916214 == record["measurements"]["nextflow_rchar"]["total"]


def test_a_dash_is_absent() -> None:
    quick = named(PEOPLE, "QUICK")
    assert ({}, {}) == (quick["measurements"], quick["usage"])
    assert (0.931, {"cpus": 1}) == (quick["wall_seconds"], quick["requirement"])


def test_memory_of_0_was_not_measured() -> None:
    assert None is figure(named(PEOPLE, "BIG"), "memory_peak_bytes")


@pytest.mark.parametrize(("order", "status", "code"), [(0, "completed", 0), (2, "oom", 137), (3, "cancelled", None)])
def test_the_outcome_follows_from_status_and_exit(order: int, status: str, code: int | None) -> None:
    outcome = runs(PEOPLE)[order].record["outcome"]
    assert (status, code, None) == (outcome["status"], outcome["exit_code"], outcome["signal"])


def test_a_cached_task_is_the_run_it_was(tmp_path: Path) -> None:
    resumed = (FIXTURES / "nextflow_raw.txt").read_text().replace("COMPLETED", "CACHED").replace("\n1\t", "\n5\t")
    again = runs(read(written(tmp_path, resumed)))
    assert [run.record["id"] for run in runs(RAW)] == [run.record["id"] for run in again]


def test_rows_without_hash_and_dates_are_runs_of_their_own(tmp_path: Path) -> None:
    path = written(tmp_path, "name\tpeak_rss\trealtime\n" + "a\t1 MB\t1s\n" * 3)
    ids = [run.record["id"] for run in runs(read(path))]
    assert 3 == len(set(ids))
    assert ids == [run.record["id"] for run in runs(read(path))]
    assert "the file's time of change" == runs(read(path))[0].record["provenance"]["imported"]["times_from"]


def test_a_bad_row_costs_only_itself(tmp_path: Path) -> None:
    content = (
        HEADER + "1\ta\tCOMPLETED\t1s\t1 MB\n2\tb\tCOMPLETED\t-5\t1 MB\n3\tc\tCOMPLETED\t1s\n4\td\tLUCKY\t1s\t1 MB\n"
        "5\te\tCOMPLETED\t1s\t99999999 TB\n6\tf\tRUNNING\t-\t-\n7\t-\tCOMPLETED\t1s\t-\n8\tg\tFAILED\tnan\t-\n"
        "9\th\tCOMPLETED\t2s\t2 MB\n"
    )
    items = read(written(tmp_path, content))
    assert ["a", "h"] == [run.record["name"] for run in runs(items)]
    assert 1 == unfinished(items)
    assert [
        "line 3: realtime '-5' is not a number from 0 up",
        "line 4: has 4 cells where the header has 5",
        "line 5: status 'LUCKY' is not a status of Nextflow",
        "line 6: peak_rss '99999999 TB' is more than can be",
        "line 8: has neither a process nor a name",
        "line 9: realtime 'nan' is not a duration",
    ] == unusable(items)


def test_a_quote_in_a_name_is_part_of_it(tmp_path: Path) -> None:
    items = read(written(tmp_path, HEADER + '1\t"x\tCOMPLETED\t1s\t1 MB\n2\ty\tCOMPLETED\t1s\t1 MB\n'))
    assert ['"x', "y"] == [run.record["name"] for run in runs(items)]


def test_a_trace_without_start_is_dated_by_its_submission(tmp_path: Path) -> None:
    header = "task_id\thash\tname\tstatus\texit\tsubmit\tduration\trealtime\n"
    row = "1\tab/cdef12\tSORT (1)\tCOMPLETED\t0\t1714557600000\t32s\t30s\n"
    record: Any = runs(read(written(tmp_path, header + row)))[0].record
    assert ("2024-05-01T10:00:00.000Z", 30.0) == (record["started"], record["wall_seconds"])
    assert "its submission" == record["provenance"]["imported"]["times_from"]
