"""Tasks that do not end by themselves: what is recorded of them, and what is left. Real workers, a real Redis."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import jobmeter
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_cgroup
from tests.celery_workers import Redis
from tests.integrations.celery.place import TaskPlace
from tests.parts import missing, need_root
from tests.waiting import LONG, wait_for
from tests.workflow.live import lives


def test_a_task_whose_child_is_killed_is_killed(place: TaskPlace) -> None:
    from celery.exceptions import WorkerLostError

    worker = place.worker("-c", "1")
    with pytest.raises(WorkerLostError):
        worker.result("kill_child", 0.6)
    run = place.run("kill_child")
    assert ("killed", 9) == (run.status.value, run.record["outcome"]["signal"])
    assert "FAILURE" == run.labels["state"]
    assert run.memory_peak_bytes is not None, "what was seen before"
    assert jobmeter.Quality.AT_LEAST == run.usage.cpu_seconds.quality  # type: ignore[union-attr]
    assert 3 == worker.result("add", 1, 2), "the worker goes on"


def test_a_task_that_is_killed_at_once_has_its_record(place: TaskPlace) -> None:
    from celery.exceptions import WorkerLostError

    worker = place.worker("-c", "1")
    sent = worker.send("kill_child", 0.0)
    with pytest.raises(WorkerLostError):
        sent.get(timeout=LONG)
    run = place.run("kill_child")
    assert "killed" == run.status.value
    assert sent.id == run.labels["task_id"]


def test_a_task_that_ends_its_process_has_failed_once(place: TaskPlace) -> None:
    from celery.exceptions import WorkerLostError

    worker = place.worker("-c", "1")
    with pytest.raises(WorkerLostError):
        worker.result("leave", 3)
    assert 3 == worker.result("add", 1, 2)
    run = place.run("leave")
    assert ("failed", 3) == (run.status.value, run.exit_code)


def test_a_task_over_its_hard_time_limit_has_timed_out(place: TaskPlace) -> None:
    from celery.exceptions import TimeLimitExceeded

    worker = place.worker("-c", "1")
    with pytest.raises(TimeLimitExceeded):
        worker.result("run_over_limit", str(place.folder))
    run = place.run("run_over_limit")
    assert "timeout" == run.status.value
    assert run.wall_seconds >= 1
    (child,) = place.pids()
    wait_for(lambda: not lives(child), "the end of the child")
    place.release()
    assert 3 == worker.result("add", 1, 2)


def test_a_task_that_is_revoked_while_it_runs_is_cancelled(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    sent = worker.send("wait", str(place.folder))
    wait_for(lambda: bool(place.pids()), "the task")
    sent.revoke(terminate=True)
    run = place.run("wait")
    assert "cancelled" == run.status.value
    assert "REVOKED" == run.labels["state"]
    (child,) = place.pids()
    wait_for(lambda: not lives(child), "the end of the child")


def test_a_child_that_is_killed_is_redelivered_and_each_attempt_is_counted_once(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    child = worker.result("kill_child_once", str(place.folder))
    wait_for(lambda: len(place.runs("kill_child_once")) == 2, "two runs")
    first, second = place.runs("kill_child_once")
    assert ("killed", "completed") == (first.status.value, second.status.value)
    assert "true" == second.labels["redelivered"]
    assert first.labels["task_id"] == second.labels["task_id"]
    assert lives(child)


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
def test_a_worker_that_is_killed_loses_only_its_attempt(place: TaskPlace, pool: str) -> None:
    environment = {"VISIBILITY_TIMEOUT": "1"}
    first = place.worker("-c", "1", "-P", pool, environment=environment)
    sent = first.send("wait", str(place.folder))
    wait_for(lambda: bool(place.pids()), "the task")
    wait_for(lambda: any(run.memory_peak_bytes is not None for run in place.runs("wait")), "a sample of it")
    first.kill()
    (child,) = place.pids()
    wait_for(lambda: not lives(child), "the end of the child")
    (lost,) = place.runs("wait")
    assert "lost" == lost.status.value
    assert lost.memory_peak_bytes is not None, "what was seen before"
    second = place.worker("-c", "1", "-P", pool, environment=environment)
    wait_for(lambda: len(place.pids()) == 2, "the task again")
    place.release()
    sent.get(timeout=LONG)
    assert ["lost", "completed"] == [run.status.value for run in place.runs("wait")]
    assert second.name == place.runs("wait")[1].labels["worker"]
    assert [sent.id] * 2 == [run.labels["task_id"] for run in place.runs("wait")]


def test_a_restart_of_redis_changes_no_figures(tmp_path: Path) -> None:
    redis = Redis()
    place = TaskPlace(tmp_path, redis.url)
    try:
        worker = place.worker("-c", "1")
        worker.send("wait", str(place.folder))
        wait_for(lambda: bool(place.pids()), "the task")
        redis.stop()
        redis.start()
        place.release()
        run = place.run("wait")
        assert "completed" == run.status.value
        wait_for(lambda: bool(worker.result("add", 1, 2)), "a task after the restart")
        assert 1 == len(place.runs("add"))
    finally:
        place.close()
        redis.close()


def test_a_task_that_the_oom_killer_ends_is_out_of_memory(place: TaskPlace) -> None:
    from celery.exceptions import WorkerLostError

    need_root("to make a cgroup")
    group = _memory_group(limit=220 << 20)
    try:
        prefix = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
        worker = place.worker("-c", "1", prefix=prefix)
        with pytest.raises(WorkerLostError):
            worker.result("grow_for_ever")
        run = place.run("grow_for_ever")
        assert "oom" == run.status.value
        assert run.memory_peak_bytes is not None
        assert 60 << 20 < run.memory_peak_bytes < 230 << 20
        with pytest.raises(WorkerLostError):
            worker.result("kill_child", 0.3)
        assert "killed" == place.run("kill_child").status.value, "that one was not the kernel"
        worker.close()
    finally:
        wait_for(lambda: _removed(group), "the end of the cgroup")


def _memory_group(limit: int) -> Path:
    """A cgroup v1 of its own below that of this process."""
    path = read_cgroup(THIS_MACHINE, os.getpid()).get("memory")
    if path is None:
        missing("needs the memory controller of cgroup v1")
    group = Path(f"/sys/fs/cgroup/memory{path}/jobmeter-test-{os.getpid()}")
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(limit))
    return group


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return not group.exists()
    return True


def test_a_worker_that_is_stopped_waits_for_its_task_and_records_it(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    worker.send("wait", str(place.folder))
    wait_for(lambda: bool(place.pids()), "the task")
    worker.process.send_signal(signal.SIGTERM)
    place.release()
    worker.process.wait(timeout=LONG)
    assert "completed" == place.run("wait").status.value
