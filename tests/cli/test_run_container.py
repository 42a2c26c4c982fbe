"""`jobmeter run --container`, with a real Docker and a real Podman."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.container_engines import IMAGE, PYTHON, WITH_PYTHON, Engine
from tests.network import CLIENT, MB, server, wired
from tests.running import NOBODY, command_line, jobmeter, readable_copy, workplace
from tests.waiting import LONG, wait_for

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("nothing_left")

KNOWN_LOAD = """
import resource, sys, time
held = b"x" * (300 << 20)
time.sleep(0.2)
del held
while time.process_time() < 2.0: pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def test_cpu_and_a_short_peak_are_right_at_a_long_interval(engine: Engine) -> None:
    cpu_seconds = []
    for _ in range(3):
        done = engine.meter(PYTHON, "-c", KNOWN_LOAD, options=[*WITH_PYTHON, "--interval", "1s"])
        assert done.exit_code == 0, done.stderr
        cpu_seconds.append(done.value("cpu_seconds"))
        assert done.value("memory_peak_bytes") == pytest.approx(int(done.stdout), rel=0.03)
        assert done.quality("cpu_seconds") == "exact"
    # The runtime's own start is in it, which takes more beside other programs.
    assert min(cpu_seconds) == pytest.approx(2.0, rel=0.02)
    assert max(cpu_seconds) < 2.2


def test_a_container_of_a_few_milliseconds_has_a_record_with_its_cpu_time(engine: Engine) -> None:
    done = engine.meter("/bin/busybox", "true")
    assert done.record["outcome"] == {"status": "completed", "exit_code": 0, "signal": None}
    # The runtime's own start is in it.
    assert 0.001 < done.value("cpu_seconds") < 0.2
    assert done.value("memory_peak_bytes") < 12 * MIB
    # Its start took most of that, and over a few milliseconds a rate is none.
    for name in ("cpu_mean_percent", "cpu_peak_percent"):
        assert done.record["usage"].get(name, {"value": 0})["value"] < 50


def test_the_mean_of_cpu_is_that_of_the_command_and_not_of_the_start(engine: Engine) -> None:
    done = engine.meter("/bin/busybox", "sleep", "0.5")
    assert done.value("cpu_seconds") > 0.005  # the runtime's
    assert done.value("cpu_mean_percent") < 2


def test_the_mean_of_cpu_is_never_above_all_cpus(engine: Engine) -> None:
    body = (
        "import os, time\nfor _ in range(3): os.fork()\nwhile time.process_time() < 0.25: pass\n"
        "import contextlib\nwith contextlib.suppress(OSError):\n    while True: os.wait()"
    )
    done = engine.meter(PYTHON, "-c", body, options=WITH_PYTHON)
    assert done.value("cpu_seconds") > 2.0
    assert done.value("cpu_mean_percent") <= 100 * (os.cpu_count() or 1)
    used = done.value("cpu_seconds") / done.record["wall_seconds"]
    assert done.value("cpu_mean_percent") == pytest.approx(100 * used, rel=0.15)


def test_bytes_of_the_last_moment_are_counted(engine: Engine) -> None:
    """Docker answers once a second, and after the end no more: the container ends as soon as all has come in."""
    body = (
        "until busybox awk '/eth0:/ && $2 >= 1000000 { got = 1 } END { exit !got }' /proc/net/dev; do :; done; "
        "busybox awk '/eth0:/ { print $2 }' /proc/net/dev"
    )
    process = running(engine, "/bin/sh", "-c", body)
    with wired(metered_network(engine, process)) as wire:
        wire.send(1000)
        stdout, stderr = process.communicate(timeout=LONG)
    assert 0 == process.returncode, stderr
    (journal,) = stored(process).glob("journal/*.jsonl")
    record = json.loads(journal.read_text().splitlines()[-1])["record"]
    assert "netns_rx_bytes" in record["measurements"], record["provenance"]
    assert int(stdout) <= record["measurements"]["netns_rx_bytes"]["total"] < 1_010_000


def test_a_hundred_megabytes_each_way_of_a_container_that_ends_with_the_last_of_them(engine: Engine) -> None:
    folder = workplace()
    waiting = (
        "import os, sys\nwhile not os.path.exists('/gate/to'): pass\nsys.argv[1:] = open('/gate/to').read().split()\n"
    )
    options = [*WITH_PYTHON, f"--mount={folder}:/gate", "--interval", "10s"]
    process = running(engine, PYTHON, "-c", waiting + CLIENT, options=options)
    with wired(metered_network(engine, process)) as wire:
        wire.number()
        with server(wire.our_address) as port:
            Path(folder, "new").write_text(f"{wire.our_address} {port} 0")
            Path(folder, "new").rename(Path(folder, "to"))
            _, stderr = process.communicate(timeout=LONG)
    assert 0 == process.returncode, stderr
    (journal,) = stored(process).glob("journal/*.jsonl")
    usage = json.loads(journal.read_text().splitlines()[-1])["record"]["usage"]
    for figure in (usage["network_rx_bytes"], usage["network_tx_bytes"]):
        assert "exact" == figure["quality"]
        assert 100 * MB < figure["value"] < 105 * MB  # headers: more of them, of smaller packets, beside other programs


def test_a_container_without_a_network_has_no_bytes(engine: Engine) -> None:
    done = engine.meter("/bin/busybox", "sleep", "0.3")
    assert not [key for key in done.record["measurements"] if key.startswith("netns_")]


def test_a_container_over_its_memory_is_out_of_memory_at_its_limit(engine: Engine) -> None:
    done = engine.meter(PYTHON, "-c", "x = b'x' * (300 << 20)", options=[*WITH_PYTHON, "--memory", "64m"])
    assert done.record["outcome"] == {"status": "oom", "exit_code": None, "signal": 9}
    assert done.exit_code == 137
    assert done.value("memory_peak_bytes") == pytest.approx(64 * MIB, rel=0.02)


def test_a_container_over_its_runtime_ends(engine: Engine) -> None:
    done = engine.meter("/bin/busybox", "sleep", "60", options=["--runtime", "1s"])
    assert ("timeout", 143) == (done.record["outcome"]["status"], done.exit_code)
    assert 1.0 <= done.record["wall_seconds"] < 30


def test_a_container_that_ignores_sigterm_is_killed(docker: Engine) -> None:
    done = docker.meter(
        "/bin/sh", "-c", "trap '' TERM; while :; do busybox sleep 0.2; done", options=["--runtime", "0.3s"]
    )
    assert done.record["outcome"] == {"status": "timeout", "exit_code": None, "signal": 9}


def test_a_cpu_limit_holds_a_busy_loop_at_a_fifth_of_a_core_and_the_throttled_time_is_recorded(engine: Engine) -> None:
    # On a busy machine it may get less.
    done = engine.meter("/bin/sh", "-c", "while :; do :; done", options=["--cpus", "0.2", "--runtime", "3s"])
    assert 0 < done.value("cpu_mean_percent") <= 24
    assert done.record["measurements"]["cgroup_throttled_seconds"]["total"] > 0
    assert (0.2, ["cpus"]) == (done.record["requirement"]["cpus"], done.record["enforced"])


@pytest.mark.parametrize("key", ["rusage_maxrss", "cgroup_io_pressure_seconds"])
def test_a_key_that_is_named_and_cannot_be_measured_leaves_nothing_of_the_container(engine: Engine, key: str) -> None:
    done = engine.meter("/bin/busybox", "sleep", "60", options=["--measurements", f"default,{key}"])
    if done.exit_code == 0:
        pytest.skip("it can be measured here")
    assert (2, 1) == (done.exit_code, done.stderr.count("\n"))
    assert f"jobmeter: --measurements: {key} cannot be measured here: " in done.stderr


def test_the_exit_code_is_the_containers(engine: Engine) -> None:
    done = engine.meter("/bin/sh", "-c", "exit 3")
    assert (3, {"status": "failed", "exit_code": 3, "signal": None}) == (done.exit_code, done.record["outcome"])


def test_an_exit_code_above_128_is_not_taken_for_a_signal_where_the_kernel_reports_which_it_is(docker: Engine) -> None:
    done = docker.meter("/bin/sh", "-c", "busybox sleep 0.5; exit 137")
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    assert 137 == done.exit_code
    assert ("failed" if release >= (6, 15) else "killed") == done.record["outcome"]["status"]


@pytest.mark.parametrize(("program", "code"), [("/no/such", 127), ("nosuch", 127), ("/tmp", 126)])
def test_a_program_that_cannot_be_run_is_reported_as_for_a_command(engine: Engine, program: str, code: int) -> None:
    done = engine.meter(program)
    assert (code, {}) == (done.exit_code, done.record)
    assert program in done.stderr
    assert 1 == done.stderr.count("\n")


def test_output_is_passed_byte_for_byte_and_the_two_streams_apart(engine: Engine) -> None:
    body = "import os\nfor n in range(300):\n    os.write(1, bytes(range(256)) * 16); os.write(2, b'e%d\\n' % n)"
    done = engine.meter(PYTHON, "-c", body, options=[*WITH_PYTHON, "--quiet"], text=False, errors=None)
    assert 0 == done.exit_code, done.stderr
    assert bytes(range(256)) * 16 * 300 == done.stdout  # type: ignore[comparison-overlap]
    assert b"".join(b"e%d\n" % n for n in range(300)) == done.stderr  # type: ignore[comparison-overlap]


def test_input_from_a_pipe_reaches_the_container_to_its_end(engine: Engine) -> None:
    text = "".join(f"line {n}\n" for n in range(20_000))
    done = engine.meter("/bin/busybox", "md5sum", options=["--quiet"], stdin=None, input=text)
    assert hashlib.md5(text.encode()).hexdigest() in done.stdout


def test_the_options_of_an_engine_reach_the_container(engine: Engine) -> None:
    folder = workplace()
    Path(folder, "file").write_text("from outside")
    body = 'busybox cat /data/file; echo " $A $B $PWD $(busybox id -u)"; busybox touch /data/new'
    done = engine.meter(
        "-c", body,
        options=["-v", f"{folder}:/data:ro", "-e", "A=one two", "-e", "B", "-w", "/tmp", "-u", "7:7", "--quiet",
                 "--entrypoint", "/bin/sh", "--container-name", "mine"],
        env={**engine.environment(), "B": "here"},
    )  # fmt: skip
    assert "from outside one two here /tmp 7\n" == done.stdout
    assert "Read-only" in done.stderr
    assert 1 == done.exit_code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_jobmeter_ends_the_container(engine: Engine, number: int) -> None:
    process = running(engine, "/bin/busybox", "sleep", "60")
    process.send_signal(number)
    _, stderr = process.communicate(timeout=LONG)
    assert 128 + number == process.returncode
    assert "cancelled" in stderr


def test_a_signal_that_the_container_handles_reaches_it(engine: Engine) -> None:
    process = running(
        engine, "/bin/sh", "-c", "trap 'echo got it; exit 5' TERM; echo ready; while :; do busybox sleep 0.1; done"
    )
    assert process.stdout is not None
    assert "ready\n" == process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=LONG)
    assert ("got it\n", 5) == (stdout, process.returncode)


def test_a_signal_that_came_before_the_command_was_executed_ends_it(engine: Engine) -> None:
    """As one that the runtime's own first program got, which handles all signals and then executes the command."""
    body = (
        "import os, signal, time\ngot = []\nsignal.signal(15, lambda *_: got.append(1))\nprint('ready', flush=True)\n"
        "while not got: time.sleep(0.01)\nos.execv('/bin/busybox', ['busybox', 'sleep', '600'])"
    )
    process = running(engine, PYTHON, "-c", body, options=WITH_PYTHON)
    assert process.stdout is not None
    assert "ready\n" == process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=LONG)
    assert (128 + signal.SIGTERM, True) == (process.returncode, "cancelled" in stderr)


def test_a_signal_that_the_container_waits_for_reaches_it(docker: Engine) -> None:
    # As tini does, the first process of many images: it handles no signal, blocks all and takes them one by one.
    body = (
        "import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [15])\nprint('ready', flush=True)\n"
        "print('got', signal.sigwait([15]) + 0)\nsys.exit(5)"
    )
    process = running(docker, PYTHON, "-c", body, options=WITH_PYTHON)
    assert process.stdout is not None
    assert "ready\n" == process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=LONG)
    assert ("got 15\n", 5) == (stdout, process.returncode)


def test_a_paused_container_ends_at_its_runtime_too(engine: Engine) -> None:
    process = running(engine, "/bin/busybox", "sleep", "60", options=["--runtime", "2s"])
    (name,) = engine.containers()
    assert 0 == engine.client("pause", name).returncode
    _, stderr = process.communicate(timeout=LONG)
    assert 143 == process.returncode, stderr
    assert "stopped at its runtime limit" in stderr


def test_the_program_that_is_named_is_the_one_that_was_to_run(engine: Engine) -> None:
    done = engine.meter("true", options=["--entrypoint", "/bin/nosuch"])
    assert (127, "jobmeter: /bin/nosuch: there is no such program in the image\n") == (done.exit_code, done.stderr)
    done = engine.meter("-c", "exit 3", options=["--entrypoint", "/bin/sh"])
    assert ("sh", ["/bin/sh", "-c", "exit 3"]) == (done.record["name"], done.record["command"])


def test_a_container_whose_output_nobody_reads_ends_as_a_command_would(engine: Engine) -> None:
    process = running(engine, "/bin/busybox", "yes")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert 141 == process.wait(timeout=LONG)
    assert process.stderr is not None
    process.stderr.close()


def running(engine: Engine, *command: str, options: Sequence[str] = ()) -> subprocess.Popen[str]:
    """`jobmeter run --container`, once the container runs."""
    given = ["--container", IMAGE, "--engine", engine.name, "--network", "none", "--store", workplace(), *options]
    words = command_line(["run", *given, "--", *command])
    process = subprocess.Popen(
        words,
        env=engine.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any(engine.inspect(name)["State"]["Running"] for name in engine.containers()):
        assert process.poll() is None
        time.sleep(0.05)
    return process


def metered_network(engine: Engine, process: subprocess.Popen[str]) -> int:
    """The first process of the only container, once jobmeter has opened the network of the container."""
    (name,) = engine.containers()
    pid = int(engine.inspect(name)["State"]["Pid"])
    network, descriptors = os.stat(f"/proc/{pid}/ns/net"), Path(f"/proc/{process.pid}/fd")

    def is_open() -> bool:
        with contextlib.suppress(OSError):  # a descriptor that is closed meanwhile
            return any(os.path.samestat(network, each.stat()) for each in descriptors.iterdir())
        return False

    wait_for(is_open, "jobmeter has opened the network of the container")
    return pid


def stored(process: subprocess.Popen[str]) -> Path:
    """The store of a run that was started by `running`."""
    words = [str(word) for word in process.args]  # type: ignore[union-attr]
    return Path(words[words.index("--store") + 1])


def test_docker_and_podman_give_the_same_record(docker: Engine, podman: Engine) -> None:
    # It waits at the end, so that each engine is queried for its own figures once: Docker answers every second.
    body = "x = b'x' * (100 << 20)\nimport time\nwhile time.process_time() < 0.5: pass\ntime.sleep(2)"
    for _ in range(4):
        a, b = (each.meter(PYTHON, "-c", body, options=WITH_PYTHON).record for each in (docker, podman))
        if "at least" not in (each["usage"]["memory_peak_bytes"]["quality"] for each in (a, b)):
            break  # on a busy machine, Podman may have removed the container before it was read for the last time
    assert a.keys() == b.keys()
    figures = [{name for name in r["usage"] if not name.startswith("network_")} for r in (a, b)]
    assert figures[0] == figures[1]
    for name in ("cpu_seconds", "memory_peak_bytes"):
        assert a["usage"][name]["value"] == pytest.approx(b["usage"][name]["value"], rel=0.05), name
        assert (a["usage"][name]["from"], "exact") == (b["usage"][name]["from"], b["usage"][name]["quality"])
    assert a["outcome"] == b["outcome"]
    assert (docker.name, podman.name) == tuple(r["provenance"]["container"]["engine"] for r in (a, b))
    # Of networks and memory, engines report different things.
    keys = [{key for key in r["measurements"] if key.startswith("container_")} for r in (a, b)]
    assert {"container_cpu_seconds", "container_mem_current", "container_pids"} <= keys[0] & keys[1]


@pytest.mark.parametrize("where", ["not running", "image", "name", "permission", "mount", "network"])
def test_what_cannot_be_is_one_clear_line_and_leaves_nothing(engine: Engine, where: str) -> None:
    given = {
        "image": ["--container", "nosuch:1", "--pull", "never"],
        "mount": ["--container", IMAGE, "-v", "/no/such/place:/x"],
        "network": ["--container", IMAGE, "--network", "nosuch"],
        "name": ["--container", IMAGE, "--network", "none", "--container-name", "taken"],
    }.get(where, ["--container", IMAGE])
    settings = engine.environment()
    if where == "not running":
        settings |= dict.fromkeys(("DOCKER_HOST", "CONTAINER_HOST"), f"unix://{engine.folder}/nowhere.sock")
    if where == "name":
        engine.client("create", "--name", "taken", "--network", "none", IMAGE, "/bin/true")
    if where == "permission":
        os.chmod(engine.socket, 0o600)
    done = engine.jobmeter("run", *given, "--engine", engine.name, "--", "true", env=settings,
                           user=NOBODY if where == "permission" else 0)  # fmt: skip
    if where == "name":
        engine.client("rm", "taken")
    assert (2 if where == "mount" else 125) == done.returncode
    assert 1 == done.stderr.count("\n"), done.stderr
    words = {
        "not running": f"is not running at unix://{engine.folder}/nowhere.sock. Start it",
        "image": f"has no image nosuch:1. Fetch it ({engine.name} pull nosuch:1)",
        "name": "a container named taken already exists. Remove it",
        "permission": f"no permission on {engine.socket}. Run as root",
        "mount": "--mount: /no/such/place: there is no such file or directory on this machine",
        "network": "nosuch",
    }
    assert words[where] in done.stderr
    assert not os.path.exists("/no/such/place")


def test_an_image_that_cannot_be_fetched_is_reported(docker: Engine) -> None:
    done = docker.jobmeter("run", "--container", "localhost:1/nosuch:1", "--engine", "docker", "--", "true")
    assert 125 == done.returncode
    assert "cannot fetch it" in done.stderr


def test_an_engine_whose_api_is_too_old_is_reported(docker: Engine) -> None:
    settings = {**docker.environment(), "DOCKER_API_VERSION": "1.99"}
    done = docker.jobmeter("run", "--container", IMAGE, "--engine", "docker", "--", "true", env=settings)
    assert 125 == done.returncode
    assert "Maximum supported API version is 1.41. Upgrade the older one, or unset DOCKER_API_VERSION" in done.stderr
    assert 1 == done.stderr.count("\n")


def test_gpus_are_requested_and_their_absence_is_reported(docker: Engine, podman: Engine) -> None:
    runs = [each.meter("/bin/busybox", "true", options=["--gpus", "all"]) for each in (docker, podman)]
    assert [125, 125] == [done.exit_code for done in runs]
    assert "[[gpu]]. Install the NVIDIA container toolkit" in runs[0].stderr
    assert "ignores --gpus" in runs[1].stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--container", IMAGE, "--engine", "lxc"], "--engine: 'lxc' is not one of auto, docker, podman"),
        (["--container", IMAGE, "--pull", "always"], "--pull: 'always' is not one of missing, never"),
        (["--container", IMAGE, "-v", "x"], "--mount: 'x' is not SOURCE:TARGET"),
        (["--container", IMAGE, "-e", "NOT_SET_ANYWHERE"], "--env: NOT_SET_ANYWHERE is not set here"),
        (["--container", IMAGE, "--gpus", "some"], "--gpus: 'some' is not all"),
    ],
)
def test_bad_options_are_one_clear_line(arguments: list[str], words: str) -> None:
    done = jobmeter("run", *arguments, "--", "true")
    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert words in done.stderr


def test_without_the_package_the_error_names_the_one_to_install() -> None:
    done = jobmeter("run", "--container", IMAGE, "--", "true", env={**os.environ, "PYTHONPATH": hidden_docker()})
    assert 125 == done.returncode
    assert "pip install 'jobmeter[docker]'" in done.stderr
    assert 1 == done.stderr.count("\n")


def hidden_docker() -> str:
    """A path on which importing `docker` fails, before the package itself."""
    folder = workplace()
    Path(folder, "docker.py").write_text("raise ImportError('not here')\n")
    return f"{folder}:{readable_copy()}/src"
