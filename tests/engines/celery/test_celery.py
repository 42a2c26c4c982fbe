"""Jobs on real workers, behind a real Redis: what goes wrong there, and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import loads

from tests.celery_workers import SOURCE, Redis, Worker, shared_redis
from tests.parts import need_root
from tests.workflow.live import Place, kill, lives, running_in, wait_for

ONE_JOB = """
name: one
jobs:
  - {name: job, command: "echo $$ >>pids; until [ -e end ]; do sleep 0.02; done; echo done", retry: 1}
"""


class CeleryPlace(Place):
    """A place whose jobs run on workers of its own."""

    def __init__(self, folder: Path, broker: str) -> None:
        super().__init__(folder, engine="celery")
        self.broker = broker
        self.timeout = "4s"
        self.workers: list[Worker] = []

    def add_worker(self, *options: str) -> Worker:
        queue = self.workers[0].queue if self.workers else None
        self.workers.append(Worker(self.broker, queue, *options))
        return self.workers[-1]

    def engine_options(self) -> dict[str, str]:
        queue = self.workers[0].queue if self.workers else "nobody"
        return {"broker": self.broker, "queue": queue, "worker-timeout": self.timeout}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[CeleryPlace]:
    made = CeleryPlace(tmp_path, shared_redis().url)
    yield made
    for worker in made.workers:
        worker.close()
    assert [] == running_in(tmp_path)


def test_a_workflow_runs_on_a_worker_and_its_figures_are_in_the_store(place: CeleryPlace) -> None:
    place.add_worker()
    spec = f"""
name: measured
jobs:
  - {{name: load, command: "{sys.executable} {loads.__file__} short-sequential ."}}
  - {{name: after, command: "echo after", blocked_by: [load]}}
"""
    done = place.run(spec)
    assert 0 == done.returncode, done.stderr
    truth = sum(_truth(place.folder))
    assert truth * 0.95 <= place.result("load")["cpu_seconds"] <= truth * 1.05
    assert "after\n" == place.log("after")


def _truth(folder: Path) -> list[float]:
    import json

    return [line["cpu"] for line in map(json.loads, (folder / "truth").read_text().splitlines()) if "cpu" in line]


def test_figures_are_those_of_the_local_engine(place: CeleryPlace, tmp_path: Path) -> None:
    place.add_worker()
    script = "x = bytearray(100 << 20); import time\nwhile time.process_time() < 1: pass"
    (tmp_path / "load.py").write_text(script)
    spec = f"name: same\njobs:\n  - {{name: load, command: {sys.executable} load.py}}\n"
    assert 0 == place.run(spec).returncode
    local = Place(tmp_path / "local")
    local.folder.mkdir()
    (local.folder / "load.py").write_text(script)
    assert 0 == local.run(spec).returncode
    there, here = place.result("load"), local.result("load")
    assert there["cpu_seconds"] == pytest.approx(here["cpu_seconds"], rel=0.05)
    assert there["memory_peak_bytes"] == pytest.approx(here["memory_peak_bytes"], rel=0.05)


def test_a_worker_that_is_killed_loses_its_attempt_alone_and_nothing_of_it_runs_on(place: CeleryPlace) -> None:
    first = place.add_worker()
    runner = place.start_run(ONE_JOB)
    place.await_lines("pids", 1)
    second = place.add_worker()
    first.kill()
    _, other = place.await_lines("pids", 2)
    wait_for(lambda: not lives(int(place.lines("pids")[0])), "the end of what the dead worker ran")
    assert lives(int(other))
    (place.folder / "end").touch()
    _, said = runner.communicate(timeout=200)
    assert 0 == runner.returncode, said
    assert [("lost", 1), ("completed", 2)] == [(each["status"], each["attempt"]) for each in place.results()]
    assert second.process.poll() is None


def test_a_job_that_waits_at_a_worker_which_is_killed_runs_elsewhere_and_has_lost_nothing(place: CeleryPlace) -> None:
    first = place.add_worker("--cpus", "1")
    runner = place.start_run(
        "name: two\njobs:\n- {name: a, command: 'echo a >>ran; sleep 600'}\n- {name: b, command: 'echo b >>ran'}\n"
    )
    place.await_lines("ran", 1)
    tasks = place.store / "workflows" / "two" / "1" / "tasks.jsonl"
    wait_for(lambda: len(tasks.read_text().splitlines()) >= 2, "both jobs at the worker")
    place.add_worker("--cpus", "1")
    first.kill()
    _, said = runner.communicate(timeout=200)
    assert 1 == runner.returncode, said
    assert ["a", "b"] == place.lines("ran")
    assert [("a", "lost", 1), ("b", "completed", 1)] == [
        (each["name"], each["status"], each["attempt"]) for each in place.results()
    ]


def test_a_worker_that_stood_still_too_long_ends_its_job_which_ran_elsewhere_meanwhile(place: CeleryPlace) -> None:
    first = place.add_worker()
    runner = place.start_run(ONE_JOB)
    pid = int(place.await_lines("pids", 1)[0])
    place.add_worker()
    first.process.send_signal(signal.SIGSTOP)
    place.await_lines("pids", 2)
    first.process.send_signal(signal.SIGCONT)
    wait_for(lambda: not lives(pid), "the end of the job on the worker that stood still")
    (place.folder / "end").touch()
    runner.communicate(timeout=200)
    assert 0 == runner.returncode
    assert ["lost", "completed"] == [each["status"] for each in place.results()]


def test_a_job_whose_runner_was_killed_goes_on_and_resume_takes_it_over(place: CeleryPlace) -> None:
    place.add_worker()
    runner = place.start_run(ONE_JOB)
    pid = int(place.await_lines("pids", 1)[0])
    kill(runner)
    assert lives(pid)
    resumed = place.start("resume", "one")
    wait_for(lambda: place.statuses().get("job") == "running", "that the job is adopted")
    (place.folder / "end").touch()
    _, said = resumed.communicate(timeout=200)
    assert 0 == resumed.returncode, said
    assert 1 == len(place.lines("pids"))
    assert [("completed", 1)] == [(each["status"], each["attempt"]) for each in place.results()]
    assert "done\n" == place.log("job")


def test_a_job_that_ended_while_no_runner_was_there_is_not_run_again(place: CeleryPlace) -> None:
    place.add_worker()
    runner = place.start_run(ONE_JOB)
    pid = int(place.await_lines("pids", 1)[0])
    kill(runner)
    (place.folder / "end").touch()
    wait_for(lambda: not lives(pid), "the end of the job")
    done = place.call("resume", "one")
    assert 0 == done.returncode, done.stderr
    assert 1 == len(place.lines("pids"))
    assert ["completed"] == [each["status"] for each in place.results()]


def test_a_job_that_is_not_wanted_any_more_is_ended_by_resume(place: CeleryPlace) -> None:
    place.add_worker()
    runner = place.start_run(ONE_JOB)
    pid = int(place.await_lines("pids", 1)[0])
    kill(runner)
    place.write("name: one\njobs:\n  - {name: job, command: echo other}\n")
    done = place.call("resume", "one")
    assert 0 == done.returncode, done.stderr
    assert not lives(pid)


def test_redis_that_is_restarted_and_lost_everything_loses_nothing_of_the_workflow(tmp_path: Path) -> None:
    redis = Redis()
    place = CeleryPlace(tmp_path, redis.url)
    place.timeout = "60s"
    try:
        place.add_worker("--cpus", "1")
        runner = place.start_run(
            "name: many\njobs:\n"
            "  - {name: waits, command: 'touch began; until [ -e end ]; do sleep 0.02; done; echo out'}\n"
            "  - {name: follows, command: 'echo $$ >>follows', blocked_by: [waits]}\n"
            "  - {name: queued, command: 'echo $$ >>queued'}\n"
        )
        wait_for(lambda: (tmp_path / "began").exists(), "the begin of the first job")
        redis.stop()
        (tmp_path / "end").touch()  # it ends while no report can be sent
        redis.start()
        _, said = runner.communicate(timeout=200)
        assert 0 == runner.returncode, said
        assert (1, 1) == (len(place.lines("follows")), len(place.lines("queued")))
        assert {"completed"} == {each["status"] for each in place.results()}
        assert "out\n" == place.log("waits")
    finally:
        for worker in place.workers:
            worker.close()
        redis.close()


def test_a_worker_takes_only_what_fits_it(place: CeleryPlace) -> None:
    place.add_worker("--cpus", "1", "--memory", "1g")
    place.add_worker("--cpus", "3", "--memory", "2g")
    spec = """
name: fits
resource_requirements:
  - {name: large, num_cpus: 2, memory: 1536m}
jobs:
  - {name: large, command: "echo a >>large; sleep 0.1", resource_requirements: large}
  - {name: small, command: "echo b >>small"}
"""
    assert 0 == place.run(spec).returncode
    large = place.json("results")["results"]
    assert {"completed"} == {each["status"] for each in large}
    refused = place.run(spec.replace("num_cpus: 2", "num_cpus: 4").replace("name: fits", "name: too-large"))
    assert 2 == refused.returncode
    assert "large" in refused.stderr
    assert 1 == len(refused.stderr.splitlines()), refused.stderr


def test_two_runners_share_a_worker_and_it_never_runs_more_than_it_has(place: CeleryPlace, tmp_path: Path) -> None:
    place.add_worker("--cpus", "1")
    spec = "name: NAME\njobs:\n" + "".join(
        f"  - {{name: j{n}, command: 'mkdir alone && sleep 0.05 && rmdir alone || echo both >>overlap'}}\n"
        for n in range(5)
    )
    runners = [
        place.start("run", str(place.write(spec.replace("NAME", name), f"{name}.yaml"))) for name in ("first", "second")
    ]
    for runner in runners:
        _, said = runner.communicate(timeout=200)
        assert 0 == runner.returncode, said
    assert [] == place.lines("overlap")


def test_output_is_fetched_from_a_worker_that_does_not_see_our_files(place: CeleryPlace) -> None:
    need_root("to hide the store from a worker")
    place.store.mkdir()
    hidden = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none {place.store} && exec "$@"', "sh"]
    place.workers.append(Worker(place.broker, prefix=hidden))
    spec = "name: far\njobs:\n  - {name: job, command: \"printf 'o\\\\377ut\\\\n'; echo err >&2; seq 100000\"}\n"
    done = place.run(spec)
    assert 0 == done.returncode, done.stderr
    (out,) = place.store.glob("workflows/*/*/logs/job.1.out")
    assert b"o\xffut\n" + "".join(f"{n}\n" for n in range(1, 100001)).encode() == out.read_bytes()
    assert "err\n" == place.log("job", "err")


@pytest.mark.parametrize("heeds_sigterm", ["true", "false"])
def test_cancel_ends_the_jobs_on_the_worker_and_those_that_wait(place: CeleryPlace, heeds_sigterm: str) -> None:
    place.add_worker("--cpus", "1")
    job = ONE_JOB.replace("retry: 1", f"supports_termination: {heeds_sigterm}")
    # Two that are sent at once may come in any order: the second is to begin nothing after the first.
    runner = place.start_run(job + "  - {name: waits, command: '[ ! -e pids ] || touch never'}\n")
    pid = int(place.await_lines("pids", 1)[0])
    kill(runner, signal.SIGTERM)
    assert 143 == runner.returncode
    assert not lives(pid)
    assert not (place.folder / "never").exists()
    assert "cancelled" == place.result("job")["status"]


def test_a_worker_that_gets_sigterm_lets_its_jobs_end_and_takes_no_more(place: CeleryPlace) -> None:
    first = place.add_worker("--cpus", "1")
    runner = place.start_run(ONE_JOB + "  - {name: later, command: echo later}\n")
    place.await_lines("pids", 1)
    first.process.send_signal(signal.SIGTERM)
    first.await_saying("1 job still runs; another signal ends it")
    place.add_worker()
    wait_for(lambda: place.statuses().get("later") == "completed", "that the other worker takes the second job")
    (place.folder / "end").touch()
    runner.communicate(timeout=200)
    assert 0 == runner.returncode
    assert {1} == {each["attempt"] for each in place.results()}
    first.process.wait(timeout=200)
    assert 0 == first.process.returncode


@pytest.mark.parametrize(("retry", "expected"), [(0, ["lost"]), (1, ["lost", "completed"])])
def test_an_adopted_job_that_a_closing_worker_gives_back_is_lost_and_tried_again_within_retry(
    place: CeleryPlace, retry: int, expected: list[str]
) -> None:
    first = place.add_worker("--cpus", "1")
    runner = place.start_run(ONE_JOB + f"  - {{name: later, command: echo later >>ran, retry: {retry}}}\n")
    place.await_lines("pids", 1)
    tasks = place.store / "workflows" / "one" / "1" / "tasks.jsonl"
    wait_for(lambda: len(tasks.read_text().splitlines()) >= 2, "both jobs at the worker")
    kill(runner)
    resumed = place.start("resume", "one")
    wait_for(lambda: place.statuses().get("job") == "running", "that both jobs are adopted")
    first.process.send_signal(signal.SIGTERM)
    first.await_saying("1 job still runs; another signal ends it")
    place.add_worker()
    (place.folder / "end").touch()
    _, said = resumed.communicate(timeout=200)
    assert (retry == 0, True) == (resumed.returncode == 1, "closed before it began" in said), said
    attempts = sorted((each["name"], each["attempt"], each["status"]) for each in place.results())
    assert [("job", 1, "completed"), *(("later", *each) for each in enumerate(expected, start=1))] == attempts
    assert ["later"] * retry == place.lines("ran")


def test_a_second_signal_ends_the_jobs_of_a_worker_and_they_run_elsewhere(place: CeleryPlace) -> None:
    first = place.add_worker()
    runner = place.start_run(ONE_JOB)
    pid = int(place.await_lines("pids", 1)[0])
    first.process.send_signal(signal.SIGINT)
    first.await_saying("1 job still runs")
    first.process.send_signal(signal.SIGINT)
    first.process.wait(timeout=200)
    assert 0 == first.process.returncode
    assert not lives(pid)
    place.add_worker()
    place.await_lines("pids", 2)
    (place.folder / "end").touch()
    runner.communicate(timeout=200)
    assert ["lost", "completed"] == [each["status"] for each in place.results()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--broker", "redis://127.0.0.1:1/0"], "redis://127.0.0.1:1/0: cannot connect to a broker"),
        (["--queue", "nobody-reads-it"], "no worker of queue 'nobody-reads-it' answers"),
        (["--worker-timeout", "soon"], "--worker-timeout"),
        (["--broker", "carrier-pigeon://x"], "carrier-pigeon"),
    ],
)
def test_a_broker_or_queue_that_cannot_be_used_is_one_line(
    place: CeleryPlace, options: list[str], message: str
) -> None:
    done = _run_with(place, place.broker, options)
    assert done.returncode in (2, 125)
    assert message in done.stderr
    assert 1 == len(done.stderr.splitlines()), done.stderr


def test_a_password_that_the_broker_refuses_is_one_line_without_it(place: CeleryPlace) -> None:
    redis = Redis("--requirepass", "open-sesame")
    try:
        for url in (redis.url, redis.url.replace("://", "://:wrong-word@")):
            done = _run_with(place, url, [])
            assert "the broker refuses the password" in done.stderr
            assert "wrong-word" not in done.stderr
            assert 1 == len(done.stderr.splitlines()), done.stderr
    finally:
        redis.close()


@pytest.mark.parametrize("package", ["celery", "redis"])
def test_without_a_package_it_says_what_to_install(place: CeleryPlace, tmp_path: Path, package: str) -> None:
    (tmp_path / "packages").mkdir(exist_ok=True)
    (tmp_path / "packages" / f"{package}.py").write_text("raise ModuleNotFoundError('gone')")
    done = _run_with(place, place.broker, [])
    assert 125 == done.returncode
    assert "pip install 'jobmeter[celery]'" in done.stderr


def test_a_worker_of_another_protocol_is_refused_by_name(place: CeleryPlace, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(SOURCE, tmp_path / "other")
    broker = tmp_path / "other/jobmeter/engines/celery/broker.py"
    broker.write_text(broker.read_text().replace("PROTOCOL = 1", "PROTOCOL = 99"))
    place.workers.append(Worker(place.broker, source=str(tmp_path / "other")))
    done = place.run(ONE_JOB)
    assert 125 == done.returncode
    assert "Install the same version on both machines" in done.stderr


def _run_with(place: CeleryPlace, broker: str, options: list[str]) -> subprocess.CompletedProcess[str]:
    spec = place.write(ONE_JOB)
    environment = {**place.environment(), "JOBMETER_BROKER": broker}
    environment["PYTHONPATH"] = os.pathsep.join(reversed(environment["PYTHONPATH"].split(os.pathsep)))
    command = [sys.executable, "-m", "jobmeter", "workflow", "run", str(spec), "--engine", "celery", *options]
    return subprocess.run(
        [*command, "--store", str(place.store)], cwd=place.folder, env=environment, capture_output=True, text=True,
        check=False, timeout=200,
    )  # fmt: skip
