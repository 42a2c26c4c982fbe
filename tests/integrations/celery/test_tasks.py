"""Each task is a run: how it is labelled, how it ended, what belongs to it. Real workers, a real Redis."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import jobmeter
from tests.celery_workers import SOURCE, TaskWorker
from tests.container_engines import IMAGE, Engine
from tests.integrations.celery.place import TaskPlace
from tests.waiting import LONG, wait_for

NAMES = "tests.integrations.celery.project."


def test_a_task_is_a_run_with_what_celery_knows_of_it(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    sent = worker.send("send_another")
    inner = sent.get(timeout=LONG)
    run, other = place.run("send_another"), place.run("add")
    assert {
        "task_id": sent.id,
        "task": NAMES + "send_another",
        "queue": worker.queue,
        "worker": worker.name,
        "retries": "0",
        "root_id": sent.id,
        "state": "SUCCESS",
    } == run.labels
    assert inner == other.labels["task_id"]
    assert sent.id == other.labels["root_id"]
    assert sent.id == other.labels["parent_id"]
    assert jobmeter.Status.COMPLETED == run.status
    assert run.wall_seconds > 0


def test_each_attempt_at_a_task_is_a_run(place: TaskPlace) -> None:
    assert "well" == place.worker("-c", "1").result("fail_once")
    first, second = place.runs("fail_once")
    assert ("failed", "0", "RETRY") == (first.status.value, first.labels["retries"], first.labels["state"])
    assert ("completed", "1", "SUCCESS") == (second.status.value, second.labels["retries"], second.labels["state"])
    assert first.labels["task_id"] == second.labels["task_id"]


def test_a_task_that_raises_has_failed_of_it(place: TaskPlace) -> None:
    with pytest.raises(ValueError, match="always"):
        place.worker("-c", "1").result("fail")
    run = place.run("fail")
    assert jobmeter.Status.FAILED == run.status
    assert "FAILURE" == run.labels["state"]
    assert "ValueError" == run.record["provenance"]["raised"]


def test_a_task_that_wants_none_of_it_is_not_measured(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    worker.result("not_measured")
    worker.result("add", 1, 1)
    assert [NAMES + "add"] == [run.name for run in place.runs()]


def test_without_the_variable_nothing_is_measured(place: TaskPlace) -> None:
    worker = place.worker("-c", "1", environment={"JOBMETER_CELERY": "0"})
    assert 3 == worker.result("add", 1, 2)
    assert not place.store.exists()


def test_install_measures_the_tasks_of_an_application(place: TaskPlace, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from tests.integrations.celery.project import app\n"
        "from jobmeter.integrations.celery import install\n"
        f"install(app, store={str(tmp_path / 'elsewhere')!r})\n"
    )
    source = os.pathsep.join([SOURCE, str(Path(SOURCE).parent), str(tmp_path)])
    environment = {"JOBMETER_CELERY": "", "PYTHONPATH": source}
    worker = place.worker("-c", "1", project="mine", environment=environment)
    assert 3 == worker.result("add", 1, 2)
    (run,) = jobmeter.open_store(tmp_path / "elsewhere").runs()
    assert NAMES + "add" == run.name


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
def test_runs_that_a_task_makes_are_linked_to_it(place: TaskPlace, pool: str) -> None:
    made = place.worker("-c", "1", "-P", pool).result("start_jobs")
    task = place.run("start_jobs")
    store = jobmeter.open_store(place.store)
    linked = {run.name: run.id for run in store.runs(labels={"parent_run": task.id})}
    # Threads share the environment, so a program that one of them starts cannot learn of its task.
    by_command = set() if pool == "threads" else {"by-command"}
    assert {"part", "by-api"} | by_command == set(linked)
    assert made == linked["by-api"]
    assert "parent_run" not in task.labels


def test_a_container_that_a_task_runs_is_linked_to_it(place: TaskPlace, engine: Engine) -> None:
    worker = place.worker("-c", "1", environment=engine.address())
    made = worker.result("start_container", IMAGE, engine.name)
    (run,) = jobmeter.open_store(place.store).runs(name="in-container")
    assert made == run.id
    assert place.run("start_container").id == run.labels["parent_run"]


def test_after_the_end_of_a_task_nothing_is_linked_to_it(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    worker.result("start_jobs")
    first = place.run("start_jobs").id
    worker.result("start_jobs")
    store = jobmeter.open_store(place.store)
    assert 3 == len(list(store.runs(labels={"parent_run": first})))


def test_a_worker_restarts_its_children_and_measures_on(place: TaskPlace) -> None:
    worker = place.worker("-c", "1", "--max-tasks-per-child", "2")
    assert [1, 2, 3, 4, 5] == [worker.result("add", 0, number) for number in (1, 2, 3, 4, 5)]
    assert 5 == len(place.runs("add"))
    assert ["completed"] * 5 == [run.status.value for run in place.runs("add")]
    assert 3 <= len(list((place.store / "journal").iterdir()))


def test_the_command_lists_what_tasks_request(tmp_path: Path) -> None:
    said = _celery("jobmeter", JOBMETER_CELERY="1", JOBMETER_STORE=str(tmp_path))
    assert 0 == said.returncode, said.stderr
    assert f"Tasks are measured. Their runs go to {tmp_path}." in said.stdout
    assert f"{NAMES}use_more_than_requested: 1 CPUs, memory 60 MiB, runtime 10" in said.stdout
    assert f"{NAMES}not_measured: not measured" in said.stdout
    assert "Tasks are not measured." in _celery("jobmeter").stdout


def test_the_command_says_which_requirement_is_not_valid() -> None:
    said = _celery("jobmeter", BAD_REQUIREMENT="1")
    assert 1 == said.returncode
    assert f"{NAMES}requests_lots: not valid: memory: 'lots' is not an amount of memory." in said.stdout


def _celery(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JOBMETER_")}
    source = f"{SOURCE}{os.pathsep}{Path(SOURCE).parent}"
    return subprocess.run(
        [sys.executable, "-m", "celery", "-A", "tests.integrations.celery.project", *arguments],
        env={**inherited, "PYTHONPATH": source, "BROKER": "memory://", **environment},
        capture_output=True,
        text=True,
        timeout=LONG,
    )


def test_running_tasks_are_listed_as_running(place: TaskPlace) -> None:
    worker: TaskWorker = place.worker("-c", "1")
    sent = worker.send("wait", str(place.folder))
    wait_for(lambda: [run.status.value for run in place.runs("wait")] == ["running"], "a running task in the store")
    place.release()
    sent.get(timeout=LONG)
    assert jobmeter.Status.COMPLETED == place.run("wait").status
