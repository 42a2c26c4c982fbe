"""Jobs on a real Ray cluster that stays whole: figures, order, output, cancelling, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.ray.place import RayPlace
from tests.parts import need_root
from tests.ray_cluster import SOURCE, shared_cluster
from tests.workflow.live import LONG, Place, kill, lives, running_in, wait_for

ONE_JOB = """
name: one
jobs:
  - {name: job, command: "echo $$ >>pids; until [ -e end ]; do sleep 0.02; done; echo done"}
"""


@pytest.fixture
def place(tmp_path: Path) -> RayPlace:
    return RayPlace(tmp_path, shared_cluster())


def test_figures_are_those_of_the_local_engine(place: RayPlace, tmp_path: Path) -> None:
    script = "x = bytearray(100 << 20); import time\nwhile time.process_time() < 1: pass"
    spec = f"name: same\njobs:\n  - {{name: load, command: {sys.executable} load.py}}\n"
    local = Place(tmp_path / "local")
    local.folder.mkdir()
    for each in (place, local):
        (each.folder / "load.py").write_text(script)
        done = each.run(spec)
        assert 0 == done.returncode, done.stderr
    there, here = place.result("load"), local.result("load")
    assert there["cpu_seconds"] == pytest.approx(here["cpu_seconds"], rel=0.05)
    assert there["memory_peak_bytes"] == pytest.approx(here["memory_peak_bytes"], rel=0.05)


def test_a_job_has_what_it_requests_reserved_and_the_order_is_that_of_priorities(place: RayPlace) -> None:
    # Each takes the whole memory of a node, of which there are two.
    priorities = (1, 3, 2, 5, 4)
    jobs = "".join(
        f"  - {{name: p{n}, command: 'until [ -e go ]; do sleep 0.02; done', "
        f"resource_requirements: whole, priority: {n}}}\n"
        for n in priorities
    )
    runner = place.start_run(f"name: order\nresource_requirements: [{{name: whole, memory: 4g}}]\njobs:\n{jobs}")
    wait_for(lambda: (place.store / "workflows/order/1/tasks.jsonl").exists(), "the first tasks")
    tasks = place.store / "workflows/order/1/tasks.jsonl"
    wait_for(lambda: len(tasks.read_text().splitlines()) == 2, "that two were sent, and no more")
    (place.folder / "go").touch()
    _, said = runner.communicate(timeout=LONG)
    assert 0 == runner.returncode, said
    sent = [priorities[json.loads(line)["job"] - 1] for line in tasks.read_text().splitlines()]
    assert ({4, 5}, [3, 2, 1]) == (set(sent[:2]), sent[2:])


def test_output_is_fetched_from_nodes_that_do_not_see_our_files(place: RayPlace) -> None:
    need_root("to hide the store from the nodes")
    place.store.mkdir()
    place.write("name: far\njobs:\n  - {name: job, command: \"printf 'o\\\\377ut\\\\n'; echo err >&2; seq 400000\"}\n")
    run = place.command("run", "spec.yaml")
    # Only the runner sees this store; what it holds in the end is copied to where everybody does.
    script = f'mount -t tmpfs none {place.store} && "$@" && cp -r {place.store} {place.folder}/copy'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *run],
        cwd=place.folder, env=place.environment(), capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    (out,) = place.folder.glob("copy/workflows/*/*/logs/job.1.out")
    assert b"o\xffut\n" + "".join(f"{n}\n" for n in range(1, 400001)).encode() == out.read_bytes()
    assert "err\n" == out.with_suffix(".err").read_text()


def test_cancel_ends_the_tree_on_the_node_and_keeps_what_was_used(place: RayPlace) -> None:
    runner = place.start_run(ONE_JOB)
    pid = int(place.await_lines("pids", 1)[0])
    wait_for(lambda: place.statuses().get("job") == "running", "a report of the job")
    kill(runner, signal.SIGTERM)
    assert 143 == runner.returncode
    assert not lives(pid)
    result = place.result("job")
    assert "cancelled" == result["status"]
    assert result["cpu_seconds"] > 0


def test_one_job_can_be_cancelled_by_its_name_while_others_go_on(place: RayPlace) -> None:
    runner = place.start_run(ONE_JOB + "  - {name: other, command: 'until [ -e end ]; do sleep 0.02; done'}\n")
    pid = int(place.await_lines("pids", 1)[0])
    done = place.call("cancel", "one", "--job", "job")
    assert 0 == done.returncode, done.stderr
    assert not lives(pid)
    (place.folder / "end").touch()
    runner.communicate(timeout=LONG)
    assert {"job": "cancelled", "other": "completed"} == place.statuses()


def test_a_job_that_waits_in_the_queue_of_ray_is_cancelled_and_never_begins(place: RayPlace) -> None:
    hog = "import ray, sys, time; ray.init(sys.argv[1], log_to_driver=False)\n"
    hog += "@ray.remote(memory=4 << 30)\ndef hold(): time.sleep(600)\n"
    hog += "held = [hold.remote() for _ in range(2)]\n"
    hog += (
        "while ray.available_resources().get('memory', 0) > 4 << 30: time.sleep(0.05)\n"  # what is left is the head's
    )
    hog += "print('held', flush=True); time.sleep(600)"
    other = subprocess.Popen(
        [sys.executable, "-c", hog, place.cluster.address], env=place.environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert "held\n" == other.stdout.readline()
        runner = place.start_run(
            "name: queued\nresource_requirements: [{name: whole, memory: 3g, num_cpus: 1}]\n"
            "jobs: [{name: job, command: touch never, resource_requirements: whole}]\n"
        )
        tasks = place.store / "workflows/queued/1/tasks.jsonl"
        wait_for(lambda: tasks.exists() and bool(tasks.read_text()), "that the job was sent")
        kill(runner, signal.SIGTERM)
        assert 143 == runner.returncode
        assert "cancelled" == place.result("job")["status"]
    finally:
        other.kill()
        other.communicate()
    assert not (place.folder / "never").exists()


def test_with_a_working_directory_jobs_run_in_a_copy_of_it(place: RayPlace) -> None:
    source = place.folder / "project"
    (source / "inner").mkdir(parents=True)
    (source / "data").write_text("from the copy\n")
    place.write(
        "name: copied\njobs:\n  - {name: job, command: 'cat data; pwd; echo $SEED; touch made', output_files: [made]}\n"
        "files: [{name: made, path: made}]\n",
        "project/spec.yaml",
    )
    done = place.call(
        "run", "project/spec.yaml", "--working-dir", "project", "--runtime-env", '{"env_vars": {"SEED": "7"}}'
    )
    assert 0 == done.returncode, done.stderr
    data, directory, seed = place.log("job").splitlines()
    assert ("from the copy", "7") == (data, seed)
    assert not directory.startswith(str(place.folder))
    assert not (source / "made").exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--address", "127.0.0.1:1"], 125, "no Ray cluster answers at 127.0.0.1:1: "),
        (["--address", "nowhere"], 2, "--address nowhere: it must be HOST:PORT of the head"),
        (
            ["--address", "ray://127.0.0.1:10001"],
            2,
            "--address ray://127.0.0.1:10001: it must be HOST:PORT of the head",
        ),
        (["--working-dir", "no-such-place"], 2, "--working-dir no-such-place: there is no such directory"),
        (["--runtime-env", "no-such-file"], 2, "--runtime-env no-such-file: neither a JSON object nor a file"),
        (["--runtime-env", "{"], 2, "--runtime-env: it is no JSON"),
    ],
)
def test_options_that_cannot_be_used_are_one_line(place: RayPlace, options: list[str], code: int, message: str) -> None:
    place.write(ONE_JOB)
    done = place.run_with(*options)
    assert code == done.returncode, done.stderr
    assert done.stderr.startswith(f"jobmeter: {message}")
    assert 1 == len(done.stderr.splitlines()), done.stderr


def test_where_no_cluster_runs_it_says_how_to_start_one(place: RayPlace) -> None:
    need_root("to hide the clusters of others")
    place.write(ONE_JOB)
    done = place.run_with(prefix=["unshare", "-p", "-f", "--mount-proc"], RAY_TMPDIR=str(place.folder))
    assert (125, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert "no Ray cluster runs here. To start one: ray start --head" in done.stderr


def test_without_ray_it_says_what_to_install(place: RayPlace) -> None:
    place.write(ONE_JOB)
    (place.folder / "fake").mkdir()
    (place.folder / "fake/ray.py").write_text("raise ModuleNotFoundError('gone')")
    done = place.run_with(PYTHONPATH=f"{SOURCE}{os.pathsep}{place.folder}/fake")
    assert (125, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert "pip install 'jobmeter[ray]'" in done.stderr


def test_a_requirement_larger_than_any_node_is_refused_before_anything_starts(place: RayPlace) -> None:
    done = place.call(
        "run",
        str(place.write(
            "name: large\nresource_requirements: [{name: large, num_cpus: 3}]\n"
            "jobs:\n- {name: wide, command: touch begun, resource_requirements: large}\n"
            "- {name: small, command: touch begun}\n"
        )),
    )  # fmt: skip
    assert (2, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert "wide" in done.stderr
    assert not (place.folder / "begun").exists()


def test_a_job_that_runs_out_of_memory_is_tried_again_with_more(place: RayPlace) -> None:
    need_root("for a limit that the kernel keeps")
    spec = f"""
name: growing
jobs:
- name: hog
  command: [{sys.executable}, -c, "x = b'x' * (150 << 20)"]
  resource_requirements: {{memory: 100m}}
  retry: {{times: 2, grow: {{memory: 2}}}}
"""
    done = place.call("run", str(place.write(spec)), "--enforce")
    assert 0 == done.returncode, done.stderr
    assert [("oom", 100 << 20), ("completed", 200 << 20)] == [
        (each["status"], each["requirement"]["memory_bytes"]) for each in place.results()
    ]


LICENSED = """
name: licensed
resource_requirements: [{name: one, cpus: 0.5, custom: {license: 1}}]
jobs:
- {name: job, parameters: {n: "1:3"}, resource_requirements: one, command: "mkdir alone && sleep 0.3 && rmdir alone"}
"""


def test_resources_that_have_a_name_of_the_clusters_own_are_requested_of_it(place: RayPlace) -> None:
    spec = str(place.write(LICENSED.replace("name: job,", 'name: "job{n}",')))
    refused = place.call("run", spec)
    assert (2, 1) == (refused.returncode, len(refused.stderr.splitlines())), refused.stderr
    assert "requests 1 license, and there are none: it can never start" in refused.stderr
    node = place.cluster.add_node(num_cpus=2, resources={"license": 1})
    try:
        done = place.call("run", spec)
    finally:
        place.cluster.remove_node(node)
    assert 0 == done.returncode, done.stderr
    assert ["completed"] * 3 == [each["status"] for each in place.results()]  # no two were there at a time


def test_a_runner_with_another_version_of_ray_is_refused(place: RayPlace) -> None:
    place.write(ONE_JOB)
    (place.folder / "fake").mkdir()
    (place.folder / "fake/sitecustomize.py").write_text(
        "import sys\nif 'driver.py' in ' '.join(sys.orig_argv):\n    import ray; ray.__version__ = '2.0.0'\n"
        if sys.version_info >= (3, 10)
        else ""
    )
    done = place.run_with("--address", place.cluster.address, PYTHONPATH=f"{SOURCE}{os.pathsep}{place.folder}/fake")
    assert (125, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert f"the cluster at {place.cluster.address} runs Ray " in done.stderr
    assert "this program Ray 2.0.0 with Python" in done.stderr


def test_a_runner_with_another_version_of_jobmeter_is_refused_with_the_node_named(place: RayPlace) -> None:
    place.write(ONE_JOB)
    shutil.copytree(SOURCE, place.folder / "other", ignore=shutil.ignore_patterns("__pycache__"))
    init = place.folder / "other/jobmeter/__init__.py"
    init.write_text(init.read_text().replace('__version__ = "', '__version__ = "99.'))
    done = place.run_with("--address", place.cluster.address, PYTHONPATH=f"{place.folder}/other")
    assert (125, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert "of the Ray cluster has jobmeter" in done.stderr
    assert "Install the same version on all nodes." in done.stderr


def test_nothing_of_a_run_stays_on_the_nodes(place: RayPlace) -> None:
    import tempfile

    done = place.run("name: clean\njobs: [{name: job, command: 'true'}]\n")
    assert 0 == done.returncode, done.stderr
    tokens = [json.loads(line)["token"]["key"] for line in (place.store / "workflows/clean/1/tasks.jsonl").open()]
    folder = Path(tempfile.gettempdir()) / f"jobmeter-ray-{os.getuid()}"
    assert [] == [path for key in tokens for path in folder.glob(f"{key}*")]
    assert [] == running_in(place.folder)
