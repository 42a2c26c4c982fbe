"""Every option of `run` and `attach`, with every kind of job: it has an effect, or it is refused."""

from __future__ import annotations

import grp
import inspect
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import jobmeter
from jobmeter.cli import attach, run
from jobmeter.errors import OptionRefused
from jobmeter.journal.reader import read_journal
from tests.container_engines import IMAGE, Engine
from tests.running import command_line, environment, workplace
from tests.running import jobmeter as run_jobmeter

KINDS = ("command", "container", "process", "running container")
MIB = 1 << 20
METRICS = '{"loss": 0.5}'
GROUP = grp.getgrgid(os.getgid()).gr_name


class Evidence(NamedTuple):
    """What there is to see of a run that got every option its kind takes."""

    record: dict[str, Any]
    windows: int
    first_window: float  # seconds after the start
    journal_has_processes: bool
    captured: str | None
    stdout: str
    stderr: str
    inspection: dict[str, Any]  # of the container
    journal_mode: int  # the permissions of the store's journals


MEASURING = {
    "name": (["--name", "named"], lambda seen: seen.record["name"] == "named"),
    "label": (["--label", "team=a"], lambda seen: seen.record["labels"] == {"team": "a"}),
    "interval": (["--interval", "0.1s"], lambda seen: seen.record["provenance"]["interval_seconds"] == 0.1),
    # In 2 s there would be many more without it, the first after some milliseconds.
    "window": (["--window", "0.2s"], lambda seen: seen.windows > 3 and seen.first_window >= 0.2),
    "measurements": (
        ["--measurements", "proc_processes,cgroup_*"],
        lambda seen: (
            "proc_processes" in seen.record["measurements"] and "rusage_maxrss" not in seen.record["measurements"]
        ),
    ),
    "threads": (["--threads"], lambda seen: seen.record["threads"][0]["cores"] != []),
    "per-process": (["--per-process"], lambda seen: seen.journal_has_processes),
    "report": (["--report", "@/record.json"], lambda seen: seen.record["schema"] == "jobmeter.run/1"),
    "store": (["--store", "@/store"], lambda seen: seen.windows > 0),
    "share-group": (["--share-group", GROUP], lambda seen: seen.journal_mode & 0o7777 == 0o660),
    "quiet": (["--quiet"], lambda seen: seen.stderr == ""),
}
REQUESTS = {
    "cpus": (["--cpus", "1"], lambda seen: seen.record["requirement"]["cpus"] == 1),
    "memory": (["--memory", "64m"], lambda seen: seen.record["requirement"]["memory_bytes"] == 64 * MIB),
    "runtime": (["--runtime", "1h"], lambda seen: seen.record["requirement"]["runtime_seconds"] == 3600),
    "enforce": (["--enforce"], lambda seen: "memory" in seen.record["enforced"]),
    "capture": (["--capture", "@/captured"], lambda seen: seen.captured == seen.stdout != ""),
    "metrics": (["--metrics", "@/metrics.json"], lambda seen: seen.record["metrics"]["loss"]["value"] == 0.5),
}
IN_CONTAINER = {
    "engine": (["--engine", "docker"], lambda seen: seen.record["provenance"]["container"]["engine"] == "docker"),
    "mount": (["--mount", "@:/given"], lambda seen: seen.inspection["Mounts"][0]["Destination"] == "/given"),
    "env": (["--env", "WORD=given"], lambda seen: "word given" in seen.stdout),
    "workdir": (["--workdir", "/tmp"], lambda seen: "in /tmp" in seen.stdout),
    "user": (["--user", "1234"], lambda seen: "user 1234" in seen.stdout),
    "network": (["--network", "none"], lambda seen: seen.inspection["HostConfig"]["NetworkMode"] == "none"),
    "entrypoint": (["--entrypoint", "/bin/sh"], lambda seen: seen.inspection["Path"] == "/bin/sh"),
    "container-name": (["--container-name", "effects"], lambda seen: seen.inspection["Name"] == "/effects"),
}
Effect = tuple[list[str], Callable[[Evidence], bool]]
EFFECTS: dict[str, dict[str, Effect]] = {
    "command": {
        **MEASURING,
        **REQUESTS,
        "own-network": (["--own-network"], lambda seen: "netns" in seen.record["provenance"]["collectors"]),
        "gpus": (["--gpus", "1"], lambda seen: seen.record["requirement"]["gpus"] == 1),
        # It would be left running, and the record would say how many.
        "orphans": (["--orphans", "end"], lambda seen: "left_running" not in seen.record["provenance"]),
    },
    "container": {**MEASURING, **REQUESTS, **IN_CONTAINER},
    "process": MEASURING,
    "running container": {**MEASURING, "engine": IN_CONTAINER["engine"]},
}
ELSEWHERE = {"command": {"auto-size"}, "container": {"gpus", "pull", "auto-size"}}
"""Without a GPU and with no image to fetch their effect is an error; see the tests below. Of a size that is chosen by
history, see `test_run_auto_size`."""
OPTIONS = {
    "cpus": "1", "memory": "1g", "runtime": "1h", "enforce": None, "orphans": "end", "capture": "/tmp/x",
    "own-network": None, "metrics": "m.json", "auto-size": None, "input": "/dev/null",
    "engine": "docker", "mount": "/tmp:/tmp", "env": "A=b", "workdir": "/", "user": "0", "network": "none",
    "gpus": "all", "entrypoint": "sh", "pull": "never", "container-name": "x", "tty": None,
    **dict.fromkeys(MEASURING),
}  # fmt: skip
"""Every option, with a value that is right for those that take it."""
REFUSED = [
    (kind, option)
    for kind in KINDS
    for option in OPTIONS
    if option not in EFFECTS[kind] and option not in ELSEWHERE.get(kind, set())
]


def test_the_table_has_every_option() -> None:
    names = set()
    for parser in (run.make_parser(), attach.make_parser()):
        names |= {string for action in parser._actions for string in action.option_strings if string.startswith("--")}
    assert {f"--{name}" for name in OPTIONS} == names - {"--help", "--container"}


@pytest.mark.parametrize(("kind", "option"), REFUSED)
def test_an_option_without_effect_is_refused_in_one_line_before_anything_starts(kind: str, option: str) -> None:
    folder = Path(workplace())
    value = OPTIONS[option]
    words = {
        "command": ["run"],
        "container": ["run", "--container", IMAGE],
        "process": ["attach", str(os.getpid())],
        "running container": ["attach", "--container", "web"],
    }[kind]
    words += ["--store", str(folder / "store"), f"--{option}", *([value] if value is not None else [])]
    done = run_jobmeter(*words, *(["--", "touch", str(folder / "started")] if words[0] == "run" else []))
    assert (2, 1) == (done.returncode, done.stderr.count("\n")), done.stderr
    assert f"--{option}: " in done.stderr.replace("-t: ", "--tty: ")
    assert [] == list(folder.iterdir())


@pytest.mark.parametrize("option", ["engine", "workdir", "user"])
def test_an_empty_value_is_a_value(option: str) -> None:
    done = run_jobmeter("run", f"--{option}", "", "--", "true")
    assert (2, f"jobmeter: --{option}: has no effect without --container IMAGE\n") == (done.returncode, done.stderr)


def test_a_limit_without_an_amount_is_refused() -> None:
    done = run_jobmeter("run", "--enforce", "--", "true")
    assert (2, "jobmeter: --enforce: has no effect without --cpus, --memory or --runtime\n") == (
        done.returncode,
        done.stderr,
    )


def test_a_setting_of_a_file_is_a_default_and_is_not_refused(docker: Engine) -> None:
    folder = workplace()
    Path(folder, "jobmeter.toml").write_text('orphans = "end"\n')
    done = docker.meter("/bin/busybox", "true", cwd=folder)
    assert (0, "completed") == (done.exit_code, done.record["outcome"]["status"])


def of_command() -> Evidence:
    folder = workplace()
    body = f"echo out; echo '{METRICS}' >{folder}/metrics.json; sleep 60 & sleep 2"
    words = ["run", *given("command", folder), "--", "sh", "-c", body]
    return seen(folder, run_jobmeter(*words))


def of_process() -> Evidence:
    folder = workplace()
    job = subprocess.Popen(["sleep", "2"])
    words = command_line(["attach", *given("process", folder), str(job.pid)])
    meter = started(words, environment())
    job.wait()
    return seen(folder, communicated(meter))


def of_container(docker: Engine) -> Evidence:
    folder = workplace()
    body = (
        "echo word $WORD; echo in $(busybox pwd); echo user $(busybox id -u); echo ready >/given/ready; "
        f"echo '{METRICS}' >/given/metrics.json; until [ -e /given/seen ]; do busybox sleep 0.05; done; busybox sleep 2"
    )
    words = command_line(["run", "--container", IMAGE, *given("container", folder), "--", "-c", body])
    meter = started(words, docker.environment())
    while not os.path.exists(f"{folder}/ready"):
        assert meter.poll() is None, meter.stderr and meter.stderr.read()
        time.sleep(0.02)
    inspection = docker.inspect("effects")
    Path(folder, "seen").touch()
    return seen(folder, communicated(meter), inspection)


def of_running_container(docker: Engine) -> Evidence:
    folder = workplace()
    docker.client("run", "--detach", "--name", "web", "--network", "none", IMAGE, "/bin/busybox", "sleep", "60")
    words = command_line(["attach", "--container", "web", *given("running container", folder)])
    meter = started(words, docker.environment())
    while not list(Path(folder).glob("store/journal/*")):
        assert meter.poll() is None, meter.stderr and meter.stderr.read()
        time.sleep(0.02)
    time.sleep(2)
    docker.client("rm", "--force", "web")
    return seen(folder, communicated(meter))


def given(kind: str, folder: str) -> list[str]:
    """Every option that the kind takes."""
    return [word.replace("@", folder) for words, _ in EFFECTS[kind].values() for word in words]


def started(words: list[str], settings: dict[str, str]) -> subprocess.Popen[str]:
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(words, env=settings, stdin=nothing, stdout=pipe, stderr=pipe, text=True)


def communicated(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    stdout, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def seen(folder: str, done: subprocess.CompletedProcess[str], inspection: dict[str, Any] | None = None) -> Evidence:
    assert 0 == done.returncode, done.stderr
    (path,) = Path(folder, "store", "journal").iterdir()
    journal, captured = read_journal(str(path)), Path(folder, "captured", "stdout")
    return Evidence(
        json.loads(Path(folder, "record.json").read_text()),
        len(journal.windows),
        journal.windows[0].seconds,
        bool(journal.processes),
        captured.read_text() if captured.exists() else None,
        done.stdout,
        done.stderr,
        inspection or {},
        path.stat().st_mode,
    )


@pytest.fixture(scope="module")
def evidence(request: pytest.FixtureRequest) -> Callable[[str], Evidence]:
    """What each kind of run shows, run once."""
    runs: dict[str, Evidence] = {}

    def of(kind: str) -> Evidence:
        if kind not in runs:
            if "container" in kind:
                docker = request.getfixturevalue("docker")
                runs[kind] = of_container(docker) if kind == "container" else of_running_container(docker)
            else:
                runs[kind] = of_command() if kind == "command" else of_process()
        return runs[kind]

    return of


@pytest.mark.parametrize(("kind", "option"), [(kind, option) for kind in KINDS for option in EFFECTS[kind]])
def test_an_option_that_is_taken_has_an_effect(evidence: Callable[[str], Evidence], kind: str, option: str) -> None:
    _, is_there = EFFECTS[kind][option]
    assert is_there(evidence(kind))


def test_an_image_that_may_not_be_fetched_is_not_fetched(docker: Engine) -> None:
    done = docker.jobmeter("run", "--container", "no-such-image", "--pull", "never", "--", "true")
    assert (125, True) == (done.returncode, "or leave out --pull never" in done.stderr)


def test_gpus_are_requested(docker: Engine) -> None:
    done = docker.jobmeter(
        "run", "--container", IMAGE, "--network", "none", "--gpus", "all", "--", "/bin/busybox", "true"
    )
    assert (125, True) == (done.returncode, "or leave out --gpus" in done.stderr)


@pytest.mark.parametrize(
    ("call", "option"),
    [
        (lambda: jobmeter.run(["true"], container=IMAGE, orphans="end"), "orphans"),
        (lambda: jobmeter.run(["true"], container=IMAGE, orphans="leave"), "orphans"),
        (lambda: jobmeter.run(["true"], enforce=True), "enforce"),
        (lambda: jobmeter.run(["true"], keep=False, store="/tmp"), "store"),
        (lambda: jobmeter.run(["true"], keep=False, window=1.0), "window"),
        (lambda: jobmeter.attach(os.getpid(), keep=False, store="/tmp"), "store"),
        (lambda: jobmeter.ContainerMeter("web", keep=False, window=1.0), "window"),
    ],
)
def test_python_refuses_options_without_effect(call: Callable[[], object], option: str) -> None:
    with pytest.raises(OptionRefused, match=f"^{option}: has no effect "):
        call()


def test_python_takes_no_option_that_is_not_in_this_test() -> None:
    """Whoever adds one says here with which kinds of job it has an effect."""
    measuring = {"name", "labels", "interval", "window", "measurements", "store", "keep"}
    launching = {"command", "cwd", "env", "cpus", "memory", "runtime", "enforce", "orphans", "container"}
    assert measuring | launching == inspect.signature(jobmeter.start).parameters.keys()
    assert measuring | {"pid"} == inspect.signature(jobmeter.attach).parameters.keys()
    assert measuring | {"container", "engine"} == inspect.signature(jobmeter.ContainerMeter).parameters.keys()
