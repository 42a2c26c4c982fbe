"""Finding the runs without an end in a file of many."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.journal.open_runs import find_runs
from jobmeter.journal.reader import read_journal
from jobmeter.journal.writer import append_to_journal, shared_journal

pytestmark = pytest.mark.no_records


def test_runs_without_a_record_are_found_wherever_they_are(tmp_path: Path) -> None:
    journal = shared_journal(str(tmp_path), "many", {})
    for run_id in ("first", "second", "third"):
        journal.begin(run_id, {"id": run_id, "name": run_id, "labels": {"task_id": f"t-{run_id}"}})
    journal.append("second", {"record": {"id": "second"}})
    journal.append("first", {"columns": []}, [1.0, 1])
    journal.close()
    locations = find_runs(journal.path, b'"task_id":"t-second"')
    assert ["first", "third"] == [location.run_id for location in locations.unfinished]
    assert locations.last_marked is not None
    assert "second" == locations.last_marked.run_id
    assert "third" == read_journal(journal.path, locations.unfinished[1]).header["id"]


def test_a_line_that_was_torn_ends_nothing(tmp_path: Path) -> None:
    journal = shared_journal(str(tmp_path), "torn", {})
    journal.begin("only", {"id": "only", "name": "only", "labels": {}})
    journal.close()
    with open(journal.path, "ab") as file:
        file.write(b'{"record":{"id":"on')
    assert ["only"] == [location.run_id for location in find_runs(journal.path, b"none").unfinished]
    append_to_journal(journal.path, {"run": "only"}, {"record": {"id": "only"}})
    assert [] == find_runs(journal.path, b"none").unfinished
