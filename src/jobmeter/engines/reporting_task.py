"""Reports about a task that runs elsewhere than its runner: the side that sends them, and the runner's side.

A report is a list that begins with its kind: `begin` and `append` have lines of the task's journal, `output` a piece of
what it wrote, `ended` its end. Each engine has its own way to send reports.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from jobmeter.engines.contract import Ended, Task
from jobmeter.engines.shared_files import Marker, has_same_files
from jobmeter.journal.writer import RunJournal
from jobmeter.store_access import access_like, open_or_create

_CHUNK = 256 * 1024
"""Bytes of output in one report."""


class ReportingTask(ABC):
    """A task, on the machine that runs it. It is also the journal of the task. Engines implement `report`."""

    path = ""
    failed: str | None = None

    def __init__(self, task: Task, marker: Marker) -> None:
        self.task = task
        self.abandoned: str | None = None  # why this machine gave it up: it is reported as lost, and may run elsewhere
        self._marker = marker
        self._folder: str | None = None  # for its output, if that must be sent
        self._read: dict[str, int] = {"stdout": 0, "stderr": 0}
        self._reading = threading.Lock()

    def local_task(self, number: int) -> Task:
        """The task as it runs here: with another number, and its output in files of this machine."""
        task = self.task._replace(number=number)
        if has_same_files(self._marker):
            return task
        self._folder = tempfile.mkdtemp(prefix="jobmeter-worker-")
        return task._replace(stdout=f"{self._folder}/stdout", stderr=f"{self._folder}/stderr")

    @abstractmethod
    def report(self, report: list[Any]) -> None:
        """Send a report that must arrive."""

    def begin(self, run_id: str, header: Mapping[str, Any]) -> None:
        self.report(["begin", run_id, header])

    def append(self, run_id: str, *lines: Any) -> None:
        if self.abandoned is not None:
            lines = tuple(line for line in lines if not (isinstance(line, dict) and "record" in line))
        if lines:
            self.report(["append", run_id, lines])

    def send_output(self) -> None:
        """Send what the job wrote since the last call. Any thread may call it, also while the job ends."""
        if self._folder is None:
            return
        with self._reading:
            for stream in self._read:
                self._send_stream(stream)

    def _send_stream(self, stream: str) -> None:
        with contextlib.suppress(OSError), open(f"{self._folder}/{stream}", "rb") as file:
            file.seek(self._read[stream])
            while piece := file.read(_CHUNK):
                self.report(["output", stream, self._read[stream], piece])
                self._read[stream] += len(piece)

    def end(self, ended: Ended) -> None:
        """Report the end of the task. This is the last report."""
        self.send_output()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self.abandoned is None:
            self.report(["ended", ended.record, ended.why])
        else:
            self.report(["ended", None, self.abandoned])


class ReportedTask:
    """A task on the runner's side: takes the reports about it."""

    def __init__(self, number: int, logs: Mapping[str, str]) -> None:
        """`logs` are the paths of stdout and stderr."""
        self.number = number
        self.logs = logs

    def take(self, report: list[Any], journal: RunJournal) -> None:
        """Write the lines of a report to the journal, or its output to the log."""
        kind, *content = report
        if kind == "begin":
            journal.begin(*content)
        elif kind == "append":
            journal.append(content[0], *content[1])
        elif kind == "output":
            self._write(*content)

    def _write(self, stream: str, offset: int, piece: bytes) -> None:
        """Write output of the job at its offset: a piece that comes twice changes nothing."""
        path = self.logs[stream]
        descriptor = open_or_create(path, access_like(os.path.dirname(path)), os.O_WRONLY)
        try:
            os.pwrite(descriptor, piece, offset)
        finally:
            os.close(descriptor)
