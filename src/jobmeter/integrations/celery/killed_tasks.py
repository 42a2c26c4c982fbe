"""Tasks that did not end by themselves: their child process was killed, or they exceeded a hard time limit.

The worker learns of it, and writes the record, with what the child had written to its journal before.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.errors import StoreError
from jobmeter.integrations.celery.requirement import NOTHING
from jobmeter.integrations.celery.task_labels import STATE, TASK_ID, labels_of
from jobmeter.integrations.warnings import Warnings
from jobmeter.journal.open_runs import find_runs
from jobmeter.journal.reader import Journal, read_journal
from jobmeter.journal.writer import append_to_journal
from jobmeter.kernel.cgroup.group import enclosing_oom_kills
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import is_ending
from jobmeter.model import Outcome, Status
from jobmeter.record import build
from jobmeter.session.block_journal import BLOCK_JOURNALS, JournalOwner, owned_files, process_writer
from jobmeter.times import utc

if TYPE_CHECKING:
    from jobmeter.record.types import Provenance, Record, Writer

_FRESH = 1.0
_PATIENCE = 30.0
"""Seconds to wait for the end of a child that is killed or exits. After that, its record is written anyway."""


class EndedTask(NamedTuple):
    """A task that did not end by itself, as the worker knows it."""

    pid: int  # the child that ran it
    accepted: float  # when, in seconds since 1970
    name: str
    labels: dict[str, str]
    outcome: Outcome


class OomKills:
    """The kernel's count of OOM kills in the cgroup of this worker."""

    def __init__(self) -> None:
        self._count = enclosing_oom_kills(THIS_MACHINE)
        self._looked = time.monotonic()

    def look(self) -> None:
        """A task begins: earlier kills are not of this task. If many short tasks begin, not each reads the count."""
        if time.monotonic() - self._looked > _FRESH:
            self._count = enclosing_oom_kills(THIS_MACHINE)
            self._looked = time.monotonic()

    def rose(self) -> bool:
        before, self._count = self._count, enclosing_oom_kills(THIS_MACHINE)
        return before is not None and self._count is not None and self._count > before


class KilledTasks:
    """Writes the records of killed tasks. For the pool `prefork`, whose children belong to the worker."""

    def __init__(self, store: str, warnings: Warnings) -> None:
        self._store = store
        self._warnings = warnings
        self._token = build.new_run_id()
        self._writer = process_writer(os.getpid())
        self.oom_kills = OomKills()

    def adopt_this_process(self) -> None:
        """In a child: from now on its journals are owned by the worker, which finds them by the child's pid."""
        pid = os.getpid()
        child = process_writer(pid)
        writer: Writer = {**child, "pid": self._writer["pid"]}
        if "start" in self._writer:
            writer["start"] = self._writer["start"]
        BLOCK_JOURNALS.belong_to(JournalOwner(writer, self._name(pid)))

    def journal_of(self, pid: int) -> str | None:
        """The journal file that a child writes to; None if there is none."""
        paths = list(owned_files(self._store, self._name(pid)))
        return paths[-1] if paths else None

    def _name(self, pid: int) -> str:
        return f"{self._token}-{pid}"

    def end(self, task: EndedTask) -> None:
        """Write the record of a task whose child is gone, and of all other unfinished runs of the child."""
        path = self.journal_of(task.pid)
        if path is None:
            self._write_unmeasured(task)
            return
        task_id = task.labels[TASK_ID]
        runs_of_task = find_runs(path, f'"{TASK_ID}":"{task_id}"'.encode())
        is_known = False
        for location in runs_of_task.unfinished:
            journal = read_journal(path, location)
            is_task = journal.header.get("labels", {}).get(TASK_ID) == task_id
            is_known = is_known or is_task
            labels = {STATE: task.labels[STATE]} if is_task else {}
            record = _record_of(journal, task.outcome, labels)
            append_to_journal(path, {"run": record["id"]}, {"record": record})
        if is_known:
            return
        if runs_of_task.last_marked is not None:
            # The task itself had ended and has a record; its child ended because of it, as after SystemExit.
            ended = read_journal(path, runs_of_task.last_marked).record
            if ended is not None and str(ended.get("started")) >= utc(task.accepted - 1):
                return
        self._write_unmeasured(task)

    def end_when_gone(self, task: EndedTask) -> None:
        """The same for a child that is about to be killed. Returns at once; the record is written when it is gone."""
        _call_later(functools.partial(self._end_if_gone, task, time.monotonic() + _PATIENCE))

    def _end_if_gone(self, task: EndedTask, deadline: float) -> None:
        with self._warnings.instead_of_failing("a task that was killed has no record"):
            if not is_ending(THIS_MACHINE, task.pid) and time.monotonic() < deadline:
                _call_later(functools.partial(self._end_if_gone, task, deadline))
            else:
                self.end(task)

    def _write_unmeasured(self, task: EndedTask) -> None:
        """Write the record of a task that was killed before it was measured."""
        identity = build.identity(
            build.new_run_id(),
            name=task.name,
            command=[],
            labels=task.labels,
            requirement=NOTHING,
            started=task.accepted,
            host=build.this_host(THIS_MACHINE),
            user=build.this_user(),
        )
        provenance: Provenance = {"failed": "it ended before it was measured"}
        now = time.time()
        record = build.complete(
            identity,
            task.outcome,
            usage={},
            measurements={},
            processes=[],
            provenance=provenance,
            wall_seconds=max(now - task.accepted, 0.0),
            ended=now,
        )
        journal = BLOCK_JOURNALS.open(self._store, record["id"])
        try:
            journal.write_whole(record)
            if journal.file.failed is not None:
                raise StoreError(journal.file.failed)
        finally:
            BLOCK_JOURNALS.close(journal)


def outcome_of_loss(message: str, oom_kills: OomKills) -> Outcome:
    """The outcome by the text of a WorkerLostError: `Worker exited prematurely: signal 9 (SIGKILL) Job: 1.`

    A child that gets SIGTERM exits with the number of that signal as its exit code.
    """
    by_signal = re.search(r"signal (\d+)", message)
    if by_signal is None:
        by_code = re.search(r"exitcode (-?\d+)", message)
        if by_code is None:
            return Outcome(Status.LOST)
        code = int(by_code[1])
        return Outcome(Status.KILLED, None, code) if code == signal.SIGTERM else Outcome(Status.FAILED, code)
    number = int(by_signal[1])
    is_oom = number == signal.SIGKILL and oom_kills.rose()
    return Outcome(Status.OOM if is_oom else Status.KILLED, None, number)


def signal_of_exit(error: BaseException | None) -> int | None:
    """The signal whose handler raised this SystemExit in a child of the pool; None for any other exception.

    billiard's handlers exit with -(256 - signal).
    """
    if isinstance(error, SystemExit) and isinstance(error.code, int) and -256 < error.code < -256 + signal.NSIG:
        return 256 + error.code
    return None


def ended_task(request: Any, worker: str, state: str, outcome: Outcome) -> EndedTask:
    """The ended task of a request of the worker. The task must have been accepted by a child."""
    labels = {**labels_of(request._context, request.name, worker), STATE: state}
    return EndedTask(request.worker_pid, request.time_start or time.time(), request.name, labels, outcome)


def _record_of(journal: Journal, outcome: Outcome, labels: dict[str, str]) -> Record:
    # The store is slow to import, and few workers lose a task.
    from jobmeter.store.index.unfinished import record_so_far

    record = record_so_far(journal, Status.LOST)
    record["outcome"] = {"status": outcome.status.value, "exit_code": outcome.exit_code, "signal": outcome.signal}
    record["labels"] = {**record["labels"], **labels}
    return record


def _call_later(action: Any) -> None:
    """Call it soon, in the worker's event loop if it has one: threads and forks do not go well together."""
    from kombu.asynchronous import get_event_loop

    loop = get_event_loop()
    if loop is not None:
        loop.call_later(0.2, action)
    else:
        timer = threading.Timer(0.2, action)
        timer.daemon = True
        timer.start()
