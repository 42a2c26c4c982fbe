from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.celery_workers import Worker, shared_redis
from tests.workflow.live import LONG, Place, lives, running_in, wait_for


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def submit(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*place.command("x")[:3], "submit", "--store", str(place.store), *words]
    return subprocess.run(
        command, cwd=place.folder, env=place.environment(), capture_output=True, text=True, check=False, timeout=LONG
    )


def test_a_job_is_submitted_and_goes_on_by_itself(place: Place) -> None:
    script = "echo $$ >pid; until [ -e end ]; do sleep 0.02; done; echo done"
    done = submit(place, "--name", "long", "--memory", "64m", "--label", "team=a", "--", "sh", "-c", script)
    assert 0 == done.returncode, done.stderr
    job = done.stdout.strip()
    assert job.startswith("long-")
    assert f"jobmeter workflow status {job}" in done.stderr
    wait_for(lambda: place.statuses(job).get("long") == "running", "that it runs")
    (place.folder / "end").touch()
    wait_for(lambda: place.statuses(job).get("long") == "completed", "its end")
    assert "done\n" == place.log("long")
    (record,) = [line["record"] for file in place.journals() for line in file if "record" in line]
    assert ({"memory_bytes": 64 << 20}, {"team": "a"}) == (record["requirement"], record["labels"])
    wait_for(lambda: not running_in(place.folder), "that its runner ends")


def test_wait_returns_with_the_exit_code_of_the_job(place: Place) -> None:
    assert 3 == submit(place, "--wait", "--", "sh", "-c", "exit 3").returncode
    assert 137 == submit(place, "--wait", "--", "sh", "-c", "kill -9 $$").returncode
    assert 127 == submit(place, "--wait", "--", "no-such-program").returncode


def test_words_of_the_command_arrive_as_they_were(place: Place) -> None:
    words = ["a b", "$HOME", "{x}", "'", '"', "é", "*"]
    script = "import json, sys; json.dump(sys.argv[1:], open('words', 'w'))"
    done = submit(place, "--wait", "--", "python3", "-c", script, *words)
    assert 0 == done.returncode, done.stderr
    assert words == json.loads((place.folder / "words").read_text())


def test_a_submitted_job_can_be_cancelled(place: Place) -> None:
    job = submit(place, "--", "sh", "-c", "echo $$ >pid; exec sleep 100").stdout.strip()
    pid = place.await_running("pid")
    assert 0 == place.call("cancel", job).returncode
    assert not lives(pid)
    assert {"sh": "cancelled"} == place.statuses(job)


def test_a_job_is_submitted_to_another_machine(place: Place) -> None:
    worker = Worker(shared_redis().url)
    try:
        options = ["--engine", "celery", "--broker", worker.broker, "--queue", worker.queue]
        done = submit(place, *options, "--wait", "--name", "far", "--", "sh", "-c", "echo out; exit 4")
        assert 4 == done.returncode, done.stderr
        assert "out\n" == place.log("far")
    finally:
        worker.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no command given"),
        (["--engine", "cellery", "--", "true"], "Did you mean 'celery'?"),
        (["--engine", "celery", "--broker", "redis://127.0.0.1:1/0", "--", "true"], "cannot connect to a broker"),
        (["--memory", "much", "--", "true"], "--memory"),
        (["--cpus", "100000", "--", "true"], "100000"),
        (["--enforce", "--", "true"], "--enforce: has no effect"),
        (["--broker", "redis://x", "--", "true"], "--broker: unknown option"),
    ],
)
def test_what_cannot_be_submitted_is_one_line_and_leaves_no_job(place: Place, words: list[str], message: str) -> None:
    done = submit(place, *words)
    assert done.returncode in (2, 125)
    assert message in done.stderr
    assert 1 == len(done.stderr.splitlines()), done.stderr
    assert "" == done.stdout
    assert [] == place.json("list")
