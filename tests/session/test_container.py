"""A container as one run, where its engine goes away, and from Python."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.container_engines import IMAGE, PYTHON, WITH_PYTHON, Engine, client_packages, groups_left, start_engine
from tests.running import NOBODY, command_line, interpreter, jobmeter, readable_copy, workplace
from tests.waiting import LONG, wait_for

MIB = 1 << 20


@pytest.fixture
def mortal() -> Iterator[Engine]:
    """A Docker of this test's own, to be killed."""
    engine = start_engine("docker")
    yield engine
    engine.end()


def test_a_run_whose_engine_is_restarted_is_followed_or_lost_and_never_counted_wrongly(mortal: Engine) -> None:
    folder, before = workplace(), groups_left()
    body = "import time\nwhile time.process_time() < 1.0: pass\nprint('burnt', flush=True)\ntime.sleep(3)"
    mounts = [word for path in ("/usr", "/lib", "/lib64") for word in ("-v", f"{path}:{path}:ro")]
    words = command_line(
        ["run", "--container", IMAGE, "--engine", "docker", "--network", "none", *mounts,
         "--report", f"{folder}/r.json", "--store", folder, "--", PYTHON, "-c", body],
    )  # fmt: skip
    process = subprocess.Popen(
        words,
        env=mortal.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "burnt\n" == process.stdout.readline()
    mortal.kill()
    mortal.start()
    _, stderr = process.communicate(timeout=LONG)

    record = json.loads(Path(folder, "r.json").read_text())
    assert record["outcome"]["status"] in ("completed", "killed", "lost"), stderr
    assert record["usage"]["cpu_seconds"]["value"] == pytest.approx(1.0, rel=0.05)
    deadline = time.monotonic() + LONG
    while mortal.containers() and time.monotonic() < deadline:
        mortal.jobmeter("doctor", "--clean")
    assert [] == mortal.containers()
    assert groups_left() - before == set()


def windows(store: str) -> int:
    """How many windows the journals of a store have."""
    lines = [line for path in Path(store).glob("journal/*.jsonl") for line in path.read_bytes().splitlines()]
    return sum(line.startswith(b"[") for line in lines)


def test_a_rootless_container_is_measured_by_its_process_and_reported_as_at_least(rootless: Engine) -> None:
    folder = workplace()
    body = (
        "import os, time\nheld = b'x' * (60 << 20)\nwhile not os.path.exists('/gate/go'): time.sleep(0.01)\n"
        "while time.process_time() < 1.0: pass"
    )
    options = ["--network", "host", f"--mount={folder}:/gate", "--store", f"{folder}/store", "--window", "0.1s"]
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(rootless.meter, PYTHON, "-c", body, options=[*WITH_PYTHON, *options], user=NOBODY)
        # What it used before its process was found is not known: it computes once there are samples of it.
        wait_for(lambda: future.done() or windows(f"{folder}/store") > 0, "a window")
        Path(folder, "go").touch()
        done = future.result()
    assert 0 == done.exit_code, done.stderr
    # It has no cgroup of its own, and Podman reports that of others.
    assert not {"container_cpu_seconds", "container_mem_current"} & done.record["measurements"].keys()
    stolen = done.record["measurements"]["perf_stolen_seconds"]["total"]
    assert 0.9 - stolen <= done.value("cpu_seconds") <= 1.1, done.record["measurements"]
    assert done.value("memory_peak_bytes") == pytest.approx(68 * MIB, rel=0.1)
    assert ["at least", "at least"] == [done.quality(name) for name in ("cpu_seconds", "memory_peak_bytes")]
    assert "rootless" in done.record["provenance"]["cgroup_parent"]
    assert [] == rootless.containers()


def test_a_limit_that_a_rootless_engine_ignores_is_reported_and_watched(rootless: Engine) -> None:
    body = "held = b'x' * (200 << 20)\nimport time\ntime.sleep(30)"
    options = [*WITH_PYTHON, "--network", "host", "--memory", "100m", "--interval", "0.1s"]
    done = rootless.meter(PYTHON, "-c", body, options=options, user=NOBODY)
    assert "Podman does not enforce a memory limit here" in done.stderr
    assert ("oom", 137) == (done.record["outcome"]["status"], done.exit_code)


@pytest.fixture
def remote(docker: Engine) -> Iterator[str]:
    """The address of a Docker that might be anywhere: only its API can be seen."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=forward_all, args=(server, docker.socket), daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


def forward_all(server: socket.socket, path: str) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = server.accept()
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(path)
            for source, sink in ((client, engine), (engine, client)):
                threading.Thread(target=forward, args=(source, sink), daemon=True).start()


def forward(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@pytest.mark.usefixtures("nothing_left")
def test_a_container_of_a_remote_engine_is_measured_by_the_api_alone_and_never_after_the_end(
    docker: Engine, remote: str
) -> None:
    body = (
        "held = b'x' * (60 << 20)\nimport time\nwhile time.process_time() < 1.0: pass\nprint(input())\ntime.sleep(2.5)"
    )
    settings = {**docker.environment(), "DOCKER_HOST": remote}
    options = [*WITH_PYTHON, "--interval", "0.2s"]
    done = docker.meter(PYTHON, "-c", body, options=options, env=settings, stdin=None, input="heard\n")
    assert (0, "heard\n") == (done.exit_code, done.stdout)
    assert done.value("cpu_seconds") == pytest.approx(1.0, rel=0.1)
    assert done.value("memory_peak_bytes") == pytest.approx(64 * MIB, rel=0.1)
    figures = done.record["usage"]
    assert ("container_cpu_seconds", "at least") == (figures["cpu_seconds"]["from"], done.quality("cpu_seconds"))
    assert "another machine" in done.record["provenance"]["cgroup_parent"]


@pytest.mark.usefixtures("nothing_left")
def test_a_container_of_a_remote_engine_ends_at_its_runtime(docker: Engine, remote: str) -> None:
    settings = {**docker.environment(), "DOCKER_HOST": remote}
    done = docker.meter("/bin/sh", "-c", "trap 'exit 7' TERM; while :; do busybox sleep 0.1; done",
                        options=["--runtime", "0.5s"], env=settings)  # fmt: skip
    assert {"status": "timeout", "exit_code": 7, "signal": None} == done.record["outcome"]


def python(engine: Engine, program: str) -> str:
    """What a program that uses the API prints, where this engine is."""
    done = subprocess.run(
        [interpreter(), "-c", textwrap.dedent(program)],
        env={**engine.environment(), "JOBMETER_STORE": workplace()},
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("nothing_left")
def test_python_runs_containers_several_at_once_each_with_its_own_figures(engine: Engine) -> None:
    printed = python(
        engine,
        f"""
        import os, jobmeter
        from jobmeter.launch.container.spec import Mount
        before = len(os.listdir("/proc/self/fd"))
        mounts = tuple(Mount(path, path, True) for path in ("/usr", "/lib", "/lib64"))
        image = jobmeter.ContainerOptions("{IMAGE}", engine="{engine.name}", network="none", mounts=mounts)
        body = "x = b'x' * (%d << 20)\\nimport time\\nwhile time.process_time() < %s: pass"
        jobs = [jobmeter.start(["{PYTHON}", "-c", body % (n * 20, n * 0.2)], container=image) for n in (1, 2, 3)]
        for job in jobs:
            run = job.wait()
            print(run.status, run.cpu_seconds, run.memory_peak_bytes)
        print(len(os.listdir("/proc/self/fd")) - before)
        """,
    )
    *lines, descriptors = printed.splitlines()
    for n, line in enumerate(lines, start=1):
        status, cpu, memory = line.split()
        assert "completed" == status
        assert float(cpu) == pytest.approx(n * 0.2, abs=0.04)
        assert float(memory) == pytest.approx((n * 20 + 5) * MIB, abs=5 * MIB)
    assert int(descriptors) <= 2  # nothing is kept open, run after run


@pytest.mark.usefixtures("nothing_left")
def test_python_measures_a_running_container_for_as_long_as_it_wants(docker: Engine) -> None:
    docker.client(
        "run", "--detach", "--name", "busy", "--network", "none", IMAGE, "/bin/sh", "-c", "while :; do :; done"
    )
    printed = python(
        docker,
        """
        import time, jobmeter
        with jobmeter.ContainerMeter("busy", engine="docker", interval=0.2) as meter:
            time.sleep(1)
        print(meter.run.status, meter.run.cpu_seconds)
        """,
    )
    docker.client("rm", "--force", "busy")
    status, cpu = printed.split()
    assert "detached" == status
    assert 0.2 < float(cpu) <= 1.3


def test_the_plain_run_does_not_know_of_containers() -> None:
    program = (
        "import sys\nfrom jobmeter.cli.main import main\n"
        "main(['run', '--quiet', '--store', sys.argv[1], '--', 'true'])\n"
        "sys.stderr.write(' '.join(name for name in sys.modules if 'container' in name or name == 'docker'))"
    )
    path = {"PYTHONPATH": f"{readable_copy()}/src:{client_packages()}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [interpreter(), "-c", program, workplace()], env=path, capture_output=True, text=True, check=True
    )
    assert "" == done.stderr


def test_the_commands_are_listed() -> None:
    assert "container" in jobmeter("--help").stdout
