"""A second engine, for the tests: tasks run in worker processes that read them from their stdin.

Nothing but JSON passes between engine and worker, as it would between two machines. It is installed as a package of
its own (`tests.engines.packages`), and so it imports nothing of the tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import IO, Any

from jobmeter.engines.contract import (
    Capabilities,
    Capacity,
    Ended,
    EngineOption,
    LeftTask,
    Receiver,
    Recovered,
    Task,
)
from jobmeter.engines.guard import Guard
from jobmeter.engines.machine_capacity import machine_capacity
from jobmeter.engines.task_run import TaskRun
from jobmeter.errors import LaunchError
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import Identity
from jobmeter.launch.leftover_jobs import identity_of
from jobmeter.launch.spawn import LaunchedJob
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample
from jobmeter.model import Value
from jobmeter.session.command import own_environment


class PipeEngine:
    """Two workers, unless the option says otherwise; one that dies is replaced, and its tasks are lost.

    Workers are in a room, as those of a cluster are behind an address: from another room they are not found.
    """

    options: Sequence[EngineOption] = (
        EngineOption("workers", "N", "processes that run jobs (default 2)"),
        EngineOption("room", "NAME", "where the workers are"),
    )
    capabilities = Capabilities(retries_elsewhere=True)

    def __init__(self, options: Mapping[str, str]) -> None:
        self._count = int(options.get("workers", "2"))
        self._room = options.get("room", "")
        self._receiver: Receiver
        self._workers: list[_Worker] = []
        self._levels: dict[int, Mapping[str, Value]] = {}
        self._cancelled = False

    def check(self, container_runtimes: Collection[str] = ()) -> None:
        if container_runtimes:
            raise LaunchError("the workers have no container runtime")

    def capacity(self) -> Capacity:
        return machine_capacity()

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def recover(self, tasks: Sequence[LeftTask]) -> Recovered:
        """Workers whose runner was killed go on until they get the order to end."""
        here = [task for task in tasks if task.token["room"] == self._room]
        left = {task.number: Identity(*task.token["worker"]) for task in here}
        alive = {number: worker for number, worker in left.items() if identity_of(THIS_MACHINE, worker.pid) == worker}
        for worker in set(alive.values()):
            os.kill(worker.pid, signal.SIGTERM)
        while any(identity_of(THIS_MACHINE, worker.pid) == worker for worker in alive.values()):
            time.sleep(0.01)
        return Recovered(len(alive))

    def start(self, task: Task) -> None:
        worker = self._least_busy()
        while not worker.take(task.number):
            worker = self._least_busy()  # that one died just now
        self._receiver.keep_token(task, {"worker": list(worker.identity), "room": self._room})
        if self._cancelled:  # also a worker that began after it
            worker.send(cancel=None, at_once=False)
        worker.send(start=task.as_json())

    def _least_busy(self) -> _Worker:
        self._workers = [worker for worker in self._workers if worker.process.poll() is None]
        if len(self._workers) < self._count:
            self._workers.append(_Worker(self._receiver, self._levels))
        return min(self._workers, key=lambda worker: len(worker.tasks))

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        self._cancelled = self._cancelled or number is None
        for worker in self._workers:
            worker.send(cancel=number, at_once=at_once)

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        return dict(self._levels)

    def close(self) -> None:
        for worker in self._workers:
            worker.send(close=True)
            worker.thread.join()


class _Worker:
    """The engine's side of one worker: a process, and a thread that takes what it reports."""

    def __init__(self, receiver: Receiver, levels: dict[int, Mapping[str, Value]]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
            start_new_session=True,
        )
        identity = identity_of(THIS_MACHINE, self.process.pid)
        assert identity is not None
        self.identity = identity
        self.tasks: set[int] = set()
        self._died = False
        self._receiver = receiver
        self._levels = levels
        self._lock = threading.Lock()
        self.thread = threading.Thread(target=self._receive)
        self.thread.start()

    def take(self, number: int) -> bool:
        """Make a task this worker's; False when it has died."""
        with self._lock:
            if not self._died:
                self.tasks.add(number)
            return not self._died

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        with self._lock, contextlib.suppress(OSError, ValueError):  # it died: `_receive` reports that
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def _receive(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdin is not None
        for line in self.process.stdout:
            self._take(**json.loads(line))
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        with self._lock:
            self._died, lost = True, list(self.tasks)
        for number in lost:
            self._end(Ended(number, None, "its worker died"))

    def _take(self, kind: str, about: Any, content: Any) -> None:
        if kind == "begin":
            self._receiver.journal.begin(about, content)
        elif kind == "append":
            self._receiver.journal.append(about, *content)
        elif kind == "levels":
            if about in self.tasks:
                self._levels[about] = content
        elif kind == "warn":
            self._receiver.warn(about)
        else:
            self._end(Ended(about, *content))

    def _end(self, ended: Ended) -> None:
        self.tasks.discard(ended.number)
        self._levels.pop(ended.number, None)
        self._receiver.ended(ended)


class Worker:
    """The process that runs tasks: a thread waits for each, and one meter samples them all."""

    path = ""  # it is the journal of its tasks, too
    failed: str | None = None

    def __init__(self, lines: IO[bytes]) -> None:
        self._lines = lines
        self._meter = Meter()
        self._guard = Guard()  # ends the jobs of a worker that is killed
        self._environment = own_environment()
        self._runs: dict[int, TaskRun] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._cancelled = False

    def serve(self) -> None:
        """Take what the engine sends, until it says that all is done, or until it is gone."""
        for line in self._lines:
            message = json.loads(line)
            if "start" in message:
                self._start(Task.from_json(message["start"]))
            elif "cancel" in message:
                self.cancel(message["cancel"], at_once=message["at_once"])
            else:
                break
        self._finish()

    def end(self) -> None:
        """Whoever finds us again after our runner was killed has us end."""
        self.cancel()
        self._finish()
        os._exit(0)

    def _finish(self) -> None:
        for thread in self._threads:
            thread.join()
        self._guard.close()

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        self._cancelled = self._cancelled or number is None
        for run in list(self._runs.values()):
            if number in (None, run.task.number):
                run.cancel(at_once=at_once)

    def _start(self, task: Task) -> None:
        def on_sample(sample: Sample) -> None:
            self._send("levels", task.number, sample.values)

        def at_gate(launched: LaunchedJob) -> None:
            self._guard.add(launched.shepherd, launched.main, launched.group)

        run = TaskRun(
            task, self, self._environment, meter=self._meter, warn=lambda message: self._send("warn", message, None),
            on_sample=on_sample, before_exec=at_gate,
        )  # fmt: skip
        self._runs[task.number] = run
        if self._cancelled:
            run.cancel()
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._threads.append(threading.Thread(target=self._run, args=(run,)))
        self._threads[-1].start()

    def _run(self, run: TaskRun) -> None:
        ended = run.run()
        del self._runs[run.task.number]
        self._send("ended", ended.number, [ended.record, ended.why])

    def begin(self, run_id: str, header: Mapping[str, Any]) -> None:
        self._send("begin", run_id, header)

    def append(self, run_id: str, *lines: Any) -> None:
        self._send("append", run_id, lines)

    def _send(self, kind: str, about: Any, content: Any) -> None:
        line = json.dumps({"kind": kind, "about": about, "content": content}).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):  # the runner was killed: the jobs go on
            while line:
                line = line[os.write(1, line) :]


def main() -> None:
    worker = Worker(sys.stdin.buffer)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the runner blocks those that it waits for
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=worker.end).start())
    worker.serve()


if __name__ == "__main__":
    main()
