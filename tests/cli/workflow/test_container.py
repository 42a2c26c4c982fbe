"""Jobs of a workflow in real containers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.container_engines import IMAGE, PYTHON, Engine
from tests.waiting import LONG, wait_for
from tests.workflow.live import Place

MIB = 1 << 20
MOUNTS = "mounts: [/usr:/usr:ro, /lib:/lib:ro, /lib64:/lib64:ro]"
USE = """
import sys, time
held, busy = bytearray(int(sys.argv[1]) << 20), float(sys.argv[2])
while time.process_time() < busy:
    pass
"""


def container(engine: Engine, more: str = MOUNTS) -> str:
    return f"{{image: '{IMAGE}', engine: {engine.name}, network: none, {more}}}"


class ContainerPlace(Place):
    """A place where one engine is."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        super().__init__(folder)
        self._engine = engine
        (folder / "use.py").write_text(USE)

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self._engine.address(), **self._engine.settings()}


@pytest.fixture
def here(tmp_path: Path, engine: Engine, nothing_left: None) -> ContainerPlace:
    return ContainerPlace(tmp_path, engine)


@pytest.fixture
def at_docker(tmp_path: Path, docker: Engine, nothing_left: None) -> ContainerPlace:
    return ContainerPlace(tmp_path, docker)


def record_of(place: Place, name: str) -> dict[str, Any]:
    lines = [line for journal in place.journals() for line in journal]
    return next(line["record"] for line in lines if "record" in line and line["record"]["name"] == name)


def test_a_job_in_a_container_finds_its_files_and_is_measured_and_logged(here: ContainerPlace, engine: Engine) -> None:
    done = here.run(f"""
jobs:
  - name: use
    command: "pwd; echo $WHO $JOBMETER_ATTEMPT; {PYTHON} use.py 60 0.5; echo done >made"
    env: {{WHO: me}}
    outputs: [made]
    resource_requirements: {{cpus: 1, memory: 200m}}
    container: {container(engine)}
  - {{name: after, command: cat made, inputs: [made]}}
""")
    assert 0 == done.returncode, done.stderr
    assert (f"{here.folder}\nme 1\n", "done\n") == (here.log("use"), here.log("after"))
    result = here.result("use")
    assert 0.5 <= result["cpu_seconds"] < 0.9
    assert 60 * MIB <= result["memory_peak_bytes"] < 95 * MIB
    assert {"cpus": 1.0, "memory_bytes": 200 * MIB} == result["requirement"]
    assert IMAGE == record_of(here, "use")["provenance"]["container"]["image"]


def test_a_request_is_a_limit_and_more_is_tried_where_that_is_allowed(here: ContainerPlace, engine: Engine) -> None:
    done = here.run(f"""
jobs:
  - name: grows
    command: ["{PYTHON}", use.py, "90", "0"]
    resource_requirements: {{cpus: 1, memory: 64m}}
    retry: {{times: 1, grow: {{memory: 2}}}}
    container: {container(engine)}
""")
    assert 0 == done.returncode, done.stderr
    first, second = here.results()
    assert ("oom", 64 * MIB, "completed", 128 * MIB) == (
        first["status"], first["requirement"]["memory_bytes"], second["status"], second["requirement"]["memory_bytes"],
    )  # fmt: skip
    assert re.search(r"advice     grows: request memory 1\d\d MiB\n", done.stderr), done.stderr


def test_one_that_does_not_heed_sigterm_is_not_sent_it(here: ContainerPlace, engine: Engine) -> None:
    done = here.run(f"""
name: deaf
jobs:
  - name: job
    command: "trap 'echo asked; exit 0' TERM; while :; do sleep 0.05; done"
    supports_termination: false
    resource_requirements: {{runtime: 3s}}
    container: {container(engine, "pull: never")}
""")
    assert (1, {"job": "timeout"}) == (done.returncode, here.statuses("deaf")), done.stderr
    assert (9, "") == (record_of(here, "job")["outcome"]["signal"], here.log("job"))


def test_fifty_containers_eight_at_a_time_have_each_its_own_figures(at_docker: ContainerPlace, docker: Engine) -> None:
    done = at_docker.run(
        f"""
jobs:
  - name: "use_{{i}}_{{b}}"
    command: ["{PYTHON}", use.py, "{{i}}", "{{b}}"]
    parameters: {{i: "30:79", b: [0.2]}}
    resource_requirements: {{cpus: 1}}
    container: {container(docker)}
""",
        "--cpus",
        "8",
        timeout=LONG,
    )
    assert 0 == done.returncode, done.stderr
    results = at_docker.results()
    assert 50 == len(results)
    for each in results:
        mebibytes = int(each["name"].split("_")[1])
        assert mebibytes * MIB <= each["memory_peak_bytes"] < (mebibytes + 35) * MIB, each
        assert 0.2 <= each["cpu_seconds"] < 0.7, each


def test_an_engine_that_is_restarted_loses_runs_or_follows_them_and_counts_none_wrongly(
    at_docker: ContainerPlace, docker: Engine
) -> None:
    process = at_docker.start_run(
        f"""
jobs:
  - name: "use_{{i}}"
    command: ["/bin/sh", "-c", "echo $$ >>began; {PYTHON} use.py 40 1.0; sleep 3; echo $$ >>ended"]
    parameters: {{i: "1:4"}}
    resource_requirements: {{cpus: 1}}
    container: {container(docker)}
""",
        "--cpus",
        "4",
    )
    at_docker.await_lines("began", 4)
    docker.kill()
    docker.start()
    process.communicate(timeout=LONG)
    for each in at_docker.results():
        assert each["status"] in ("completed", "killed", "lost", "failed"), each
        if each["status"] == "completed":
            assert 1.0 <= each["cpu_seconds"] < 1.6
            assert 40 * MIB <= each["memory_peak_bytes"] < 75 * MIB
    completed = sum(each["status"] == "completed" for each in at_docker.results())
    assert completed <= len(at_docker.lines("ended"))


def test_a_killed_runner_leaves_no_container_and_can_be_resumed(here: ContainerPlace, engine: Engine) -> None:
    spec = f"""
name: left
jobs:
  - name: waits
    command: "echo $$ >>began; while [ ! -e go ]; do sleep 0.1; done"
    container: {container(engine, "pull: never")}
"""
    process = here.start_run(spec)
    here.await_lines("began", 1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: engine.containers() == [], "the end of the container")
    (here.folder / "go").touch()
    done = here.call("resume", "left")
    assert (0, 2) == (done.returncode, len(here.lines("began"))), done.stderr
    assert {"waits": "completed"} == here.statuses("left")


def test_an_engine_that_is_away_is_reported_in_one_line_and_nothing_starts(tmp_path: Path) -> None:
    place = Place(tmp_path)
    environment = {**place.environment(), "DOCKER_HOST": f"unix://{tmp_path}/nowhere.sock"}
    done = place.run(
        """
jobs:
  - {name: first, command: touch begun}
  - {name: second, command: "true", container: {image: x, engine: docker}}
""",
        env=environment,
    )
    assert (125, False) == (done.returncode, os.path.exists(tmp_path / "begun"))
    assert 1 == len(done.stderr.splitlines()), done.stderr
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ("{image: x, mounts: ['nothing']}", "job 'a': container: "),
        ("{image: x, mounts: [{source: /tmp}]}", "a mount has source, target and read_only, and here is source"),
        ("{image: x, gpus: some}", "'some' is not all, a number above 0, or device=ID,ID"),
        ("{image: x, pull: always}", "'always' is not one of missing, never"),
        ("{image: x, engine: dokcer}", "dokcer"),
        ("{image: ''}", "image"),
    ],
)
def test_a_container_that_means_nothing_is_refused_before_anything_starts(
    tmp_path: Path, container: str, message: str
) -> None:
    done = Place(tmp_path).run(f"jobs: [{{name: a, command: 'true', container: {container}}}]")
    assert (2, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert message in done.stderr


def test_the_results_of_containers_are_those_of_other_jobs_too(at_docker: ContainerPlace, docker: Engine) -> None:
    at_docker.run(f"jobs: [{{name: a, command: 'exit 3', container: {container(docker)}}}]")
    listed = subprocess.run(
        [*at_docker.command("results")[:3], "ls", "--json", "--store", str(at_docker.store)],
        env=at_docker.environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    (row,) = json.loads(listed.stdout)
    assert ("failed", 3, "spec") == (row["status"], row["exit_code"], row["workflow"])
