"""The journal of one run of a workflow: the runs of all its jobs, wherever they are measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jobmeter.engines.contract import Task
from jobmeter.engines.task_run import unmeasured_record
from jobmeter.journal.reader import RunLocation, read_journal
from jobmeter.journal.writer import JournalFile, journal_path
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_stat
from jobmeter.model import Outcome, Status
from jobmeter.session.measuring import shared_header

if TYPE_CHECKING:
    from jobmeter.record.types import Record


class WorkflowJournal(JournalFile):
    """A file of many runs, which this process writes also for those that are measured on other machines."""

    def __init__(self, store: str, name: str, measurements: list[str] | None) -> None:
        """StoreError when the store cannot be written. Each time that a run is resumed begins another file."""
        part = 1
        while os.path.exists(journal_path(store, f"{name}-{part}")):
            part += 1
        super().__init__(journal_path(store, f"{name}-{part}"), shared_header(measurements))
        self._run_ids: dict[int, str] = {}  # of the running attempts, by the number of their job
        self._writer: dict[str, Any] = {"pid": os.getpid(), "host": os.uname().nodename}
        try:
            # Pids are reused: with its start time it is known later whether this process still lives.
            self._writer["start"] = read_stat(THIS_MACHINE, os.getpid()).start
        except (OSError, ValueError):
            pass  # no /proc here

    def begin(self, run_id: str, header: Mapping[str, Any]) -> None:
        """The header of a run; whoever measures it, the writer is this process."""
        self._run_ids[header["workflow"]["job_id"]] = run_id
        super().begin(run_id, {**header, "writer": {**header.get("writer", {}), **self._writer}})

    def forget(self, number: int) -> None:
        """A new attempt at a job starts, or the last one has ended."""
        self._run_ids.pop(number, None)

    def end_lost(self, task: Task) -> Record:
        """Write the record of a task that its engine lost, with what was seen of it, and return it."""
        run_id = self._run_ids.get(task.number)
        if run_id is None:
            return unmeasured_record(task, Outcome(Status.LOST), self)
        journal = read_journal(self.path, RunLocation(run_id))
        if journal.record is not None:
            return journal.record
        # The store is dear to import, and few runs lose a task.
        from jobmeter.store.index.unfinished import record_so_far

        record = record_so_far(journal, Status.LOST)
        self.append(run_id, {"record": record})
        return record
