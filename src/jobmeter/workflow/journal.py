"""The journal of one run of a workflow: the runs of all its jobs, wherever they are measured."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
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
    """A file of many runs. This process writes all of it, also the runs that are measured on other machines."""

    def __init__(
        self,
        store: str,
        name: str,
        measurements: list[str] | None,
        began: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Create the file: another one each time the workflow is resumed. Raises StoreError if it cannot be written.

        `began` is called with the number of each job that begins to run, in the thread in which the engine reports it.
        """
        part = 1
        while os.path.exists(journal_path(store, f"{name}-{part}")):
            part += 1
        self._writer = _this_writer()
        # In the shared header, so that readers know that the file will grow, even before its first run.
        shared = {**shared_header(measurements), "writer": self._writer}
        super().__init__(journal_path(store, f"{name}-{part}"), shared)
        self._order = threading.RLock()
        self._held: list[Callable[[], None]] | None = None  # delayed writes, see `hold`; None: write at once
        self._began = began
        self._run_ids: dict[int, str] = {}  # of the running attempts, by the number of their job

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Delay what is to be written until the block ends; then write it in its order."""
        self._held = []
        try:
            yield
        finally:
            with self._order:
                held, self._held = self._held, None
                for write in held:
                    write()

    def begin(self, run_id: str, header: Mapping[str, Any]) -> None:
        """Write the header of a run. Its writer is this process, also if another machine measures the run."""
        with self._order:
            if self._held is not None:
                self._held.append(lambda: self.begin(run_id, header))
            else:
                self._begin(run_id, header)

    def append(self, run_id: str, *lines: Any) -> None:
        with self._order:
            if self._held is not None:
                self._held.append(lambda: self.append(run_id, *lines))
            else:
                super().append(run_id, *lines)

    def _begin(self, run_id: str, header: Mapping[str, Any]) -> None:
        number = header["workflow"]["job_id"]
        self._run_ids[number] = run_id
        super().begin(run_id, {**header, "writer": {**header.get("writer", {}), **self._writer}})
        self._began(number)

    def forget(self, number: int) -> None:
        """Forget the run of a job's last attempt: it has ended, or a new attempt starts."""
        self._run_ids.pop(number, None)

    def end_lost(self, task: Task) -> Record:
        """Write the record of a task that its engine lost, with what was measured so far, and return it."""
        run_id = self._run_ids.get(task.number)
        if run_id is None:
            return unmeasured_record(task, Outcome(Status.LOST), self)
        journal = read_journal(self.path, RunLocation(run_id))
        if journal.record is not None:
            return journal.record
        # The store is slow to import, and few runs lose a task.
        from jobmeter.store.index.unfinished import record_so_far

        record = record_so_far(journal, Status.LOST)
        self.append(run_id, {"record": record})
        return record


def _this_writer() -> dict[str, Any]:
    writer: dict[str, Any] = {"pid": os.getpid(), "host": os.uname().nodename}
    try:
        # Pids are reused: only with its start time can it be checked later whether this process still runs.
        writer["start"] = read_stat(THIS_MACHINE, os.getpid()).start
    except (OSError, ValueError):
        pass  # no /proc here
    return writer
