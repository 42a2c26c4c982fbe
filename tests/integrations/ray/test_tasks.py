"""Tasks and actors of a real Ray cluster, each a run in the store: figures, labels, ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jobmeter
from tests.ray_cluster import SOURCE, shared_cluster
from tests.waiting import LONG


class Measured:
    """What a driver said, and the runs that it left."""

    def __init__(self, said: dict[str, Any], store: Path) -> None:
        self.said = said
        self._store = store

    def runs(self, name: str) -> list[jobmeter.Run]:
        """Of this name, the oldest first."""
        return list(jobmeter.open_store(self._store).runs(name=name))[::-1]

    def run(self, name: str) -> jobmeter.Run:
        (run,) = self.runs(name)
        return run


def cpu(run: jobmeter.Run) -> float:
    assert run.cpu_seconds is not None
    return run.cpu_seconds


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    store = tmp_path_factory.mktemp("ray-tasks") / "store"
    cluster = shared_cluster()
    done = subprocess.run(
        [sys.executable, "-m", "tests.integrations.ray.driver", cluster.address],
        cwd=Path(SOURCE).parent, env={**cluster.environment(), "JOBMETER_STORE": str(store)},
        capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr[-3000:]
    return Measured(json.loads(done.stdout.splitlines()[-1]), store)


def test_a_task_of_many_short_subprocesses_has_all_their_cpu_time(measured: Measured) -> None:
    truth = measured.said["subprocesses"]
    assert measured.run("subprocesses").cpu_seconds == pytest.approx(truth, rel=0.03)


def test_a_run_has_the_task_the_node_and_what_the_task_reserves(measured: Measured) -> None:
    run = measured.run("labelled")
    assert measured.said["labelled"] == run.labels["task_id"]
    assert ("a", 56) == (run.labels["team"], len(run.labels["node"]))
    assert "actor" not in run.labels
    assert {"cpus": 1.0, "memory_bytes": 100 << 20} == run.record["requirement"]


def test_a_task_that_raises_has_failed_and_its_caller_sees_the_error(measured: Measured) -> None:
    assert "RayTaskError(ValueError)" == measured.said["fails"]
    assert jobmeter.Status.FAILED == measured.run("fails").status


def test_a_task_whose_worker_is_killed_is_lost_and_not_forgotten(measured: Measured) -> None:
    assert "WorkerCrashedError" == measured.said["killed"]
    assert jobmeter.Status.LOST == measured.run("killed").status


def test_a_generator_is_one_run_and_yields_what_it_did(measured: Measured) -> None:
    assert [0, 1, 2] == measured.said["yields"]
    assert measured.run("yields").cpu_seconds == pytest.approx(0.3, rel=0.1)


def test_a_store_that_cannot_be_written_fails_no_task(measured: Measured) -> None:
    assert "done" == measured.said["unmeasured"]


def test_every_call_of_an_actor_is_a_run_with_the_actor_named(measured: Measured) -> None:
    assert [1, 2] == measured.said["counter"]
    assert 1 == len(measured.runs("Counter.__init__"))
    for run in measured.runs("Counter.add"):
        assert (measured.said["actor"], "the-counter") == (run.labels["actor"], run.labels["actor_name"])
        assert run.cpu_seconds == pytest.approx(0.2, rel=0.1)
    assert 2 == len(measured.runs("Counter.add"))


def test_calls_of_concurrency_groups_at_one_time_have_their_own_cpu_time_and_memory_is_shared(
    measured: Measured,
) -> None:
    work = sorted(cpu(run) for run in measured.runs("Groups.work"))
    assert work == pytest.approx([0.2, 0.4], rel=0.1)
    assert cpu(measured.run("Groups.rest")) < 0.1
    for run in measured.runs("Groups.work"):
        assert "shared" == run.record["usage"]["memory_peak_bytes"]["quality"]


def test_coroutines_that_take_turns_have_their_own_cpu_time(measured: Measured) -> None:
    work = sorted(cpu(run) for run in measured.runs("Turns.work"))
    assert work == pytest.approx([0.2, 0.4], rel=0.15)
    assert [0, 1] == measured.said["items"]
    assert 1 == len(measured.runs("Turns.items"))


def test_install_measures_what_was_there_before_and_what_tasks_start(measured: Measured) -> None:
    assert ("nested", 1) == (measured.said["plain"], measured.said["method"])
    for name in ("plain", "nested", "Plain.method"):
        assert "install" == measured.run(name).labels["by"]
