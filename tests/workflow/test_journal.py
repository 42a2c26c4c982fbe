from __future__ import annotations

import os
from pathlib import Path

from jobmeter.engines.contract import Task
from jobmeter.engines.task_run import unmeasured_record
from jobmeter.model import Outcome, Status
from jobmeter.store import open_store
from jobmeter.workflow.journal import WorkflowJournal


def test_a_run_that_begins_after_readers_saw_the_journal_empty_is_listed(tmp_path: Path) -> None:
    journal = WorkflowJournal(str(tmp_path), "w-1", None)
    os.utime(tmp_path / "journal", (1, 1))  # so that only the file itself shows that something happened
    store = open_store(str(tmp_path), print)
    store.update()
    assert [] == list(store.runs())
    task = Task(1, 1, "job", ["true"], "/", {}, "out", "err", {"id": "w", "run_id": 1, "job_id": 1, "attempt": 1})
    record = unmeasured_record(task, Outcome(Status.LOST), journal)
    store.update()
    assert [record["id"]] == [run["id"] for run in store.runs()]
