"""Jobs in containers on a worker: the container runtime is where the worker is, not where the runner is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.celery_workers import Worker, shared_redis
from tests.cli.workflow.test_container import MIB, USE, container, record_of
from tests.container_engines import IMAGE, PYTHON, Engine
from tests.workflow.live import Place, kill, wait_for


class WorkerPlace(Place):
    """A place whose jobs run on a worker that reaches a container runtime. The runner reaches none."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        super().__init__(folder, engine="celery")
        (folder / "use.py").write_text(USE)
        nowhere = dict.fromkeys(("DOCKER_HOST", "CONTAINER_HOST"), f"unix://{folder}/nowhere.sock")
        self._nowhere = {**nowhere, "PATH": "/nowhere"}
        settings = {**engine.address(), **engine.settings()}
        self.worker = Worker(shared_redis().url, None, "--cpus", "2", environment=settings)

    def engine_options(self) -> dict[str, str]:
        return {"broker": self.worker.broker, "queue": self.worker.queue, "worker-timeout": "20s"}

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self._nowhere}


@pytest.fixture
def place(tmp_path: Path, engine: Engine, nothing_left: None) -> Iterator[WorkerPlace]:
    made = WorkerPlace(tmp_path, engine)
    yield made
    made.worker.close()


def test_a_job_runs_in_a_container_on_the_worker_and_is_measured_there(place: WorkerPlace, engine: Engine) -> None:
    done = place.run(f"""
name: on worker
jobs:
  - name: use
    command: "{PYTHON} use.py 60 0.5; echo done"
    resource_requirements: {{cpus: 1, memory: 200m}}
    container: {container(engine)}
""")
    assert 0 == done.returncode, done.stderr
    assert "done\n" == place.log("use")
    figures = place.result("use")
    assert 0.5 <= figures["cpu_seconds"] < 0.9
    assert 60 * MIB <= figures["memory_peak_bytes"] < 95 * MIB
    assert IMAGE == record_of(place, "use")["provenance"]["container"]["image"]


def test_cancel_ends_the_container_on_the_worker(place: WorkerPlace, engine: Engine) -> None:
    runner = place.start_run(f"""
name: long
jobs:
  - {{name: waits, command: "{PYTHON} use.py 1 1000", container: {container(engine)}}}
""")
    wait_for(lambda: engine.containers() != [], "the container")
    kill(runner, signal.SIGTERM)
    wait_for(lambda: engine.containers() == [], "the end of the container")
    assert "cancelled" == place.result("waits")["status"]
