"""A real broker and real workers: a Redis of the tests' own, `jobmeter worker` and `celery worker` processes."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.parts import missing, need_module
from tests.waiting import LONG, wait_for

SOURCE = str(Path(__file__).parents[1] / "src")


class Redis:
    """A server on a port of its own, which keeps nothing when it ends."""

    def __init__(self, *options: str) -> None:
        program = shutil.which("redis-server")
        if program is None:
            missing("needs redis-server: apt-get install redis-server")
        need_module("celery")
        self._program = program
        self._options = options
        self._folder = tempfile.mkdtemp(prefix="jobmeter-redis-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        command = [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *self._options]
        self._process = subprocess.Popen(command, cwd=self._folder, stdout=subprocess.DEVNULL)
        wait_for(self._answers, "an answer of Redis")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=LONG)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def _answers(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


@functools.cache
def shared_redis() -> Redis:
    """The server that most tests use, until the end of this process."""
    server = Redis()
    atexit.register(server.close)
    return server


class Program:
    """A worker of some kind, in a session of its own, and what it prints."""

    ready = ""
    """What it prints when it takes jobs."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], folder: str = "/") -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("JOBMETER_")}
        self._log = tempfile.NamedTemporaryFile()  # noqa: SIM115 - closed by `close`
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**inherited, **environment},
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            start_new_session=True,
        )
        try:
            self.await_saying(self.ready)
        except BaseException:
            self.kill()
            raise

    def said(self) -> str:
        """What it printed."""
        return Path(self._log.name).read_text(encoding="utf-8")

    def await_saying(self, words: str) -> None:
        def happened() -> bool:
            assert words in self.said() or self.process.poll() is None, f"the worker ended: {self.said()}"
            return words in self.said()

        wait_for(happened, f"{words!r} from the worker")

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(timeout=LONG)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill(signal.SIGTERM)
        self._log.close()


class Worker(Program):
    """A `jobmeter worker` that takes jobs of a queue of its own."""

    ready = "takes jobs"

    def __init__(
        self,
        broker: str,
        queue: str | None = None,
        *options: str,
        prefix: Sequence[str] = (),
        source: str = SOURCE,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`prefix` is what the command begins with, `source` where its jobmeter is."""
        self.broker = broker
        self.queue = queue or new_queue()
        command = [sys.executable, "-m", "jobmeter", "worker", "--broker", broker, "--queues", self.queue, *options]
        super().__init__([*prefix, *command], {"PYTHONPATH": source, **(environment or {})})


def new_queue() -> str:
    return f"q{uuid.uuid4().hex[:8]}"


class TaskWorker(Program):
    """A `celery worker` of the project that tests have, whose tasks are measured into a store."""

    ready = " ready."

    def __init__(
        self,
        broker: str,
        store: str | os.PathLike[str],
        *options: str,
        queue: str | None = None,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        project: str = "tests.integrations.celery.project",
    ) -> None:
        self.broker = broker
        self.queue = queue or new_queue()
        self.name = f"{self.queue}-{uuid.uuid4().hex[:4]}@tests"
        command = [sys.executable, "-m", "celery", "-A", project, "worker", "-l", "INFO", "-Q", self.queue]
        command += ["-n", self.name]
        super().__init__(
            [*prefix, *command, *options],
            {
                "PYTHONPATH": f"{SOURCE}{os.pathsep}{Path(SOURCE).parent}",
                "BROKER": broker,
                "QUEUE": self.queue,
                "C_FORCE_ROOT": "1",  # Celery warns root otherwise
                "JOBMETER_CELERY": "1",
                "JOBMETER_STORE": os.fspath(store),
                "JOBMETER_INTERVAL": "0.05s",
                **(environment or {}),
            },
        )

    def send(self, task: str, *arguments: object, **options: Any) -> Any:
        """Send a task of the project; what comes back has `get`."""
        return _client(self.broker).send_task(
            f"tests.integrations.celery.project.{task}", arguments, queue=self.queue, **options
        )

    def result(self, task: str, *arguments: object) -> Any:
        return self.send(task, *arguments).get(timeout=LONG)


@functools.cache
def _client(broker: str) -> Any:
    from celery import Celery

    return Celery("client", broker=broker, backend=broker, set_as_current=False)


@functools.cache
def shared_worker() -> Worker:
    """A worker for tests that do it no harm, until the end of this process."""
    worker = Worker(shared_redis().url, None, "--cpus", "4")
    atexit.register(worker.close)
    return worker
