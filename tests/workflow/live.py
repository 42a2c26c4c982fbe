"""Workflows that really run: a place with a spec and a store, and `jobmeter workflow` as people call it."""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobmeter.engines import load_engine
from jobmeter.engines.contract import Engine
from tests.celery_workers import shared_worker
from tests.engines.packages import install_pipe
from tests.parts import missing
from tests.ray_cluster import shared_cluster
from tests.running import NOBODY, become, environment_with_packages
from tests.waiting import LONG, lives, wait_for

ON_BOTH_ENGINES = pytest.mark.parametrize("place", ["local", "pipe"], indirect=True)
"""Runs a test on the local engine, and on one whose jobs run in other processes."""

ON_EVERY_ENGINE = pytest.mark.parametrize("place", ["local", "pipe", "celery", "ray"], indirect=True)
"""Runs a test on every engine: also behind a broker, where jobs go on when their runner is killed, and on Ray."""


class Place:
    """A directory that jobs run in."""

    def __init__(self, folder: Path, user: int | None = None, engine: str = "local") -> None:
        """`engine` is that of `workflow run`; `pipe` is installed as a package of its own."""
        self.folder = folder
        self.store = folder / "store"
        self.engine = engine
        self.packages = folder / "packages"
        self._user = user
        if engine == "pipe":
            install_pipe(self.packages)
        if user:
            folder.chmod(0o777)

    def load_engine(self) -> Engine:
        """The engine for this process."""
        sys.path.append(str(self.packages))
        try:
            return load_engine(self.engine, self.engine_options())
        finally:
            sys.path.remove(str(self.packages))

    def engine_options(self) -> dict[str, str]:
        """Where the engine finds its workers."""
        if self.engine == "ray":
            return {"address": shared_cluster().address}
        if self.engine != "celery":
            return {}
        worker = shared_worker()
        return {"broker": worker.broker, "queue": worker.queue}

    def write(self, text: str, name: str = "spec.yaml") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def command(self, *words: str) -> list[str]:
        engine = ["--engine", self.engine] if words[0] == "run" and self.engine != "local" else []
        engine += [f"--{name}={value}" for name, value in self.engine_options().items()] if engine else []
        return [*_jobmeter(self._user), "workflow", words[0], "--store", str(self.store), *engine, *words[1:]]

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("JOBMETER_", "XDG_"))}
        path = environment_with_packages()["PYTHONPATH"] if self._user else f"{Path(__file__).parents[2]}/src"
        return {**kept, "PYTHONPATH": f"{path}:{self.packages}", "HOME": str(self.folder)}

    def call(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """`jobmeter workflow WORDS` to its end."""
        settings: dict[str, Any] = {
            "cwd": self.folder, "env": self.environment(), "capture_output": True, "text": True, "timeout": LONG,
            **options,
        }  # fmt: skip
        return subprocess.run(self.command(*words), check=False, **settings)

    def run(self, text: str, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """`workflow run` of a spec, on two CPUs unless requested otherwise."""
        return self.call("run", "--cpus", "2", str(self.write(text)), *options, **more)

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        """`jobmeter workflow WORDS` in a session of its own, as from another terminal."""
        settings: dict[str, Any] = {
            "cwd": self.folder, "env": self.environment(), "text": True, "start_new_session": True,
            "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more,
        }  # fmt: skip
        return subprocess.Popen(self.command(*words), **settings)

    def start_run(self, text: str, *options: str, **more: Any) -> subprocess.Popen[str]:
        return self.start("run", "--cpus", "2", str(self.write(text)), *options, **more)

    def results(self, *words: str) -> list[dict[str, Any]]:
        attempts: list[dict[str, Any]] = self.json("results", *words)["results"]
        return attempts

    def result(self, name: str, attempt: int = 1) -> dict[str, Any]:
        return next(each for each in self.results() if (each["name"], each["attempt"]) == (name, attempt))

    def statuses(self, *words: str) -> dict[str, str]:
        return {job["name"]: job["status"] for job in self.json("status", *words)["jobs"]}

    def json(self, *words: str) -> Any:
        done = self.call(words[0], "--json", *words[1:])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def lines(self, name: str) -> list[str]:
        """What jobs wrote to a file of theirs."""
        path = self.folder / name
        return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []

    def log(self, job: str, ending: str = "out", *, attempt: int = 1, workflow: str = "*") -> str:
        pattern = f"{self.store}/workflows/{workflow}/*/logs/{glob.escape(job)}.{attempt}.{ending}"
        (path,) = glob.glob(pattern)
        return Path(path).read_text(encoding="utf-8")

    def journals(self) -> list[list[Any]]:
        """The lines of each journal file."""
        paths = sorted((self.store / "journal").glob("*.jsonl"))
        return [[json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] for path in paths]

    def await_lines(self, name: str, count: int) -> list[str]:
        """The lines of a file once it has so many."""
        wait_for(lambda: len(self.lines(name)) >= count, f"{count} lines in {name}")
        return self.lines(name)

    def await_running(self, name: str) -> int:
        """The pid that a job wrote to a file of this name."""
        return int(self.await_lines(name, 1)[0])


def _jobmeter(user: int | None) -> list[str]:
    if user in (None, os.getuid()):
        return [sys.executable, "-m", "jobmeter"]
    python = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    if not os.path.exists(python):
        missing(f"needs {python}, which an ordinary user may run")
    return [*become(user), python, "-m", "jobmeter"]


def running_in(folder: Path) -> list[str]:
    """The command lines of all processes whose working directory is the folder or below it."""
    commands = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd").startswith(str(folder)) and lives(int(pid)):
                commands.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return commands


def guard_of(runner: int) -> int:
    """The pid of the process that watches over a runner's jobs."""
    for pid in Path(f"/proc/{runner}/task/{runner}/children").read_text(encoding="ascii").split():
        if b"guard.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return int(pid)
    raise AssertionError(f"{runner} has no guard")


def kill(runner: subprocess.Popen[str], number: int = signal.SIGKILL) -> int:
    """End the runner, and it alone; returns its exit code."""
    runner.send_signal(number)
    runner.communicate(timeout=LONG)
    return runner.returncode


__all__ = [
    "LONG", "NOBODY", "ON_BOTH_ENGINES", "ON_EVERY_ENGINE", "Place", "guard_of", "kill", "lives", "running_in",
    "wait_for",
]  # fmt: skip
