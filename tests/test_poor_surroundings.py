"""Limits of the shell, closed or full output, no /proc, an early Ctrl-C: at most one line, and the right exit code."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.parts import need_root
from tests.running import NOBODY, command_line, environment, jobmeter, meter, workplace
from tests.waiting import LONG


def limited(name: int, amount: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(name, (amount, amount))


@pytest.mark.parametrize("files", [5, 6, 8, 12, 16, 20])
def test_too_few_descriptors_are_reported_before_the_job_starts(files: int) -> None:
    done = jobmeter("run", "--", "echo", "ran", preexec_fn=limited(resource.RLIMIT_NOFILE, files))
    assert (125, "") == (done.returncode, done.stdout)
    assert f"{files} is the limit. Raise it with `ulimit -n`." in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("files", range(24, 40, 3))
def test_a_job_that_is_started_with_few_descriptors_is_followed_to_its_end(files: int) -> None:
    done = jobmeter("run", "--quiet", "--", "sh", "-c", "exit 5", preexec_fn=limited(resource.RLIMIT_NOFILE, files))
    assert done.returncode in (5, 125)
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_too_few_processes_are_reported_in_one_line(processes: int) -> None:
    need_root("to become a user without other processes")
    limit = ["prlimit", f"--nproc={processes}"]
    user = ["setpriv", "--reuid=61234", "--regid=61234", "--clear-groups"]
    done = subprocess.run(
        [*user, *limit, *command_line(["run", "--", "sh", "-c", "exit 5"])],
        env={**environment(), "HOME": workplace()}, capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip
    assert done.returncode == 125
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("size", [0, 1, 1024, 4096])
@pytest.mark.parametrize("shepherd", ["compiled", "python"])
def test_files_that_may_not_grow_cost_no_exit_code(size: int, shepherd: str) -> None:
    settings = {**environment(), "HOME": workplace(), "JOBMETER_SHEPHERD": shepherd}
    done = jobmeter("run", "--", "sh", "-c", "exit 5", env=settings, preexec_fn=limited(resource.RLIMIT_FSIZE, size))
    assert done.returncode == 5
    assert "was killed" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_job_itself_is_ended_by_its_limit_of_file_size() -> None:
    body = "cd @; exec dd if=/dev/zero of=large bs=64k count=1"
    done = meter("sh", "-c", body, preexec_fn=limited(resource.RLIMIT_FSIZE, 20000))
    assert done.exit_code == 128 + signal.SIGXFSZ


def test_a_deleted_directory_stops_nothing() -> None:
    words = command_line(["run", "--quiet", "--store", workplace(), "--", "sh", "-c", "exit 5"])
    folder = workplace()
    done = subprocess.run(
        ["sh", "-c", 'cd "$0"; rmdir "$0"; exec "$@"', folder, *words],
        env=environment(), capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--cpus", "1e308", "true"], "--cpus: '1e308' is more CPUs than any machine has"),
        (["run", "--enforce", "--cpus", "1e308", "true"], "--cpus: '1e308' is more CPUs than any machine has"),
    ],
)
def test_absurd_numbers_are_refused_in_one_line(arguments: list[str], words: str) -> None:
    done = jobmeter(*arguments)
    assert (2, f"jobmeter: {words}\n") == (done.returncode, done.stderr)


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-", "<&- >&-"])
@pytest.mark.parametrize("arguments", ["--help", "--version", "schema", "measurements --json", "doctor"])
def test_output_that_cannot_be_written_is_an_error_of_one_line(arguments: str, redirection: str) -> None:
    words = " ".join(command_line(arguments.split()))
    done = subprocess.run(
        ["sh", "-c", f"{words} {redirection}"],
        env={**environment(), "HOME": workplace()}, capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip
    assert done.returncode == 125
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("not here: ")]
    assert line.startswith("jobmeter: the output cannot be written: ")


@pytest.mark.parametrize("redirection", ["</dev/null >/dev/full 2>/dev/full", "<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_or_full_do_not_change_the_exit_code(redirection: str) -> None:
    options = ["--report", "/dev/full", "--store", workplace()]
    words = " ".join(command_line(["run", *options, "--", "sh", "-c", "'exit 5'"]))
    done = subprocess.run(["sh", "-c", f"{words} {redirection}"], env=environment(), capture_output=True, check=False)
    assert done.returncode == 5
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("redirection", ["<&-", "<&- >&-", "<&- >&- 2>&-"])
def test_no_file_of_ours_takes_the_number_of_a_closed_stream(redirection: str) -> None:
    folder = workplace()
    options = ["--capture", f"{folder}/captured", "--cpus", "1", "--interval", "0.05s", "--store", folder]
    script = f"'sleep 0.3; cat 2>{folder}/said; exit 5'"
    words = " ".join(command_line(["run", *options, "--", "sh", "-c", script]))
    done = subprocess.run(["sh", "-c", f"{words} {redirection}"], env=environment(), capture_output=True, check=False)
    assert (5, False) == (done.returncode, b"Traceback" in done.stderr)
    assert "Bad file descriptor" in Path(folder, "said").read_text()  # it is closed for the job too


def test_characters_that_the_encoding_lacks_are_escaped() -> None:
    folder = workplace()
    settings = {**environment(), "HOME": folder, "PYTHONIOENCODING": "ascii"}
    done = jobmeter("run", "--name", "caf\u00e9", "--", "sh", "-c", "exit 5", env=settings)
    assert done.returncode == 5
    done = jobmeter("doctor", env=settings)
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("shepherd", ["compiled", "python"])
def test_without_proc_the_job_runs_and_is_measured_as_far_as_can_be(shepherd: str) -> None:
    need_root("to hide /proc")
    folder = workplace()
    body = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 5"
    words = command_line(["run", "--store", folder, "--report", f"{folder}/r.json", "--", "sh", "-c", body])
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc; exec "$@"', "sh", *words],
        env={**environment(), "JOBMETER_SHEPHERD": shepherd}, capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    record = json.loads(Path(folder, "r.json").read_text())
    assert record["usage"]["cpu_seconds"]["from"] == "rusage_cpu_seconds"
    # Of sh; an interpreter has more. What the shepherd in Python has is not taken for the job's.
    peak = record["usage"].get("memory_peak_bytes")
    assert peak is None if shepherd == "python" else peak["value"] < 5 << 20


def test_an_early_ctrl_c_prints_no_traceback_of_jobmeters() -> None:
    chance = random.Random(9)
    settings = {**environment(), "HOME": workplace()}
    for _ in range(50):
        process = subprocess.Popen(
            command_line(["run", "--quiet", "--", "sh", "-c", "exit 5"]),
            env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(chance.uniform(0, 0.06))
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=LONG)
        # While Python itself starts, it prints one of its own, and no program can change that.
        if "Traceback" in stderr or "Fatal Python error" in stderr:
            assert f"{os.sep}jobmeter{os.sep}" not in stderr
        else:
            assert process.returncode in (-signal.SIGINT, 130, 5), stderr


def test_an_ordinary_user_without_a_home_runs_jobs() -> None:
    done = jobmeter("run", "--quiet", "--", "sh", "-c", "exit 5", user=NOBODY)
    assert done.returncode == 5
