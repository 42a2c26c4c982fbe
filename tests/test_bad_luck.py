"""Bad input and bad luck: one clear line, the right exit code, and the job is never harmed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobmeter.byte_text import to_bytes
from tests.parts import need_root
from tests.running import (
    NOBODY,
    ROOT,
    command_line,
    environment,
    interpreter,
    jobmeter,
    meter,
    readable_copy,
    workplace,
)
from tests.small_disk import small_disk


def journals(store: str) -> list[str]:
    return os.listdir(f"{store}/journal") if os.path.exists(f"{store}/journal") else []


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["no-such-command"], 127, "no-such-command: command not found"),
        (["./no/such/file"], 127, "no such file or directory"),
        (["/tmp"], 126, "/tmp: is a directory"),
        (["./plain"], 126, "./plain: permission denied"),
        (["./wrong-interpreter"], 127, "its interpreter"),
        ([""], 127, "the command is empty"),
    ],
)
def test_a_command_that_cannot_be_run_leaves_no_record(command: list[str], code: int, words: str) -> None:
    folder = workplace()
    Path(folder, "plain").write_text("echo hello\n")
    Path(folder, "wrong-interpreter").write_text("#!/no/such/interpreter\n")
    os.chmod(f"{folder}/wrong-interpreter", 0o755)
    done = jobmeter("run", "--store", f"{folder}/store", "--report", f"{folder}/r.json", "--", *command, cwd=folder)
    assert done.returncode == code
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert journals(f"{folder}/store") == []
    assert not os.path.exists(f"{folder}/r.json")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--intervall", "2", "true"], "--intervall: unknown option. Did you mean '--interval'? See `jobmeter run"),
        (["--interval", "0", "true"], "--interval: '0' is not above 0"),
        (["--interval", "-1", "true"], "--interval"),
        (["--interval", "abc", "true"], "--interval: 'abc' is not a duration"),
        (["--interval", "0.0001", "true"], "--interval: '0.0001' is below 0.005 s, the shortest interval"),
        (["--memory", "9" * 400, "true"], "more memory than any machine has"),
        (["--runtime", "9" * 400, "true"], "is not a duration"),
        (["--window", "0", "true"], "--window: '0' is not above 0"),
        (["--memory", "8gigs", "true"], "--memory: '8gigs' is not an amount of memory"),
        (["--memory", "0", "true"], "--memory: '0' is not above 0"),
        (["--cpus", "none", "true"], "--cpus: 'none' is not a number above 0"),
        (["--runtime", "soon", "true"], "--runtime: 'soon' is not a duration"),
        (["--orphans", "eat", "true"], "--orphans: 'eat' is not one of leave, wait, end"),
        (["--label", "nothing", "true"], "--label: 'nothing' is not KEY=VALUE"),
        (["--measurements", "proc_rss_totl", "true"], "Did you mean 'proc_rss_total'?"),
        (["--report", "/no/such/folder/r.json", "true"], "--report: /no/such/folder/r.json: cannot be written"),
        (["--capture", "/proc/nowhere", "true"], "--capture: /proc/nowhere"),
        (["--store", "postgresql://host/db", "true"], "runs are stored in a directory"),
        ([], "no command given"),
    ],
)
def test_an_option_that_means_nothing_stops_before_the_job_starts(arguments: list[str], words: str) -> None:
    folder = workplace()
    started = [word if word != "true" else f"{folder}/mark" for word in arguments]
    Path(folder, "mark").write_text("#!/bin/sh\n: > $0.ran\n")
    os.chmod(f"{folder}/mark", 0o755)
    done = jobmeter("run", *started)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not os.path.exists(f"{folder}/mark.ran")


def test_an_unknown_command_of_jobmeter_names_the_nearest() -> None:
    done = jobmeter("measurments")
    assert (2, "jobmeter: there is no command 'measurments'. Did you mean 'measurements'?\n") == (
        done.returncode,
        done.stderr,
    )


def test_a_package_that_cannot_be_loaded_is_named_in_one_line() -> None:
    folder = workplace()
    Path(folder, "sqlalchemy.py").write_text("raise ImportError('libx.so: no memory\\nfor it', name='sqlalchemy')\n")
    variables = environment()
    done = jobmeter("ls", env={**variables, "HOME": folder, "PYTHONPATH": f"{variables['PYTHONPATH']}:{folder}"})
    assert done.returncode == 125
    assert done.stderr.startswith("jobmeter: sqlalchemy cannot be loaded: for it. Install jobmeter anew")
    assert len(done.stderr.splitlines()) == 1


def test_a_configuration_that_cannot_be_read_is_named_with_its_line() -> None:
    folder = workplace()
    Path(folder, "jobmeter.toml").write_text('interval = 2\nwindow = "\n')
    done = jobmeter("run", "true", cwd=folder)
    assert done.returncode == 0
    assert f"{folder}/jobmeter.toml" in done.stderr
    assert "line 2" in done.stderr


@pytest.mark.parametrize("store", ["/proc/no-store-here", "/dev/null/store"])
def test_a_store_that_cannot_be_written_costs_the_record_and_not_the_job(store: str) -> None:
    done = jobmeter("run", "--store", store, "--", "sh", "-c", "echo did it; exit 3")
    assert (3, "did it\n") == (done.returncode, done.stdout)
    assert "this run is not stored" in done.stderr
    assert "CPU" in done.stderr


def test_another_users_store_costs_the_record_and_not_the_job() -> None:
    need_root("for a store of another user")
    folder = workplace()
    os.mkdir(f"{folder}/store", 0o700)
    done = jobmeter("run", "--store", f"{folder}/store", "--", "sh", "-c", "exit 4", user=NOBODY)
    assert done.returncode == 4
    assert "Permission denied" in done.stderr


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[str]:
    """A file system of 64 KiB."""
    with small_disk(tmp_path, "64k") as disk:
        yield str(disk)


def test_a_disk_that_fills_up_costs_windows_and_not_the_job(tiny_disk: str) -> None:
    options = ["--interval", "0.02", "--window", "0.02", "--per-process"]
    fill = f"sleep 0.3; head -c 200k /dev/zero > {tiny_disk}/full; sleep 0.5; exit 6"
    done = jobmeter("run", "--store", f"{tiny_disk}/store", *options, "--", "sh", "-c", fill)
    assert done.returncode == 6
    assert "the journal is incomplete" in done.stderr
    assert "No space left on device" in done.stderr


def test_a_run_that_found_no_room_for_a_while_is_recorded_with_its_gap(tiny_disk: str) -> None:
    options = ["--interval", "0.02", "--window", "0.02", "--per-process"]
    body = (
        f"cd {tiny_disk}; head -c 200k /dev/zero > full 2>/dev/null; "
        "until grep -q '^{.gap' store/journal/*; do sleep 0.3; rm -f full; sleep 0.1; "
        "head -c 200k /dev/zero > full 2>/dev/null; done; rm -f full; exit 6"
    )
    done = jobmeter("run", "--store", f"{tiny_disk}/store", *options, "--", "sh", "-c", body)
    assert done.returncode == 6
    assert "the journal is incomplete" in done.stderr
    (journal,) = Path(tiny_disk, "store", "journal").iterdir()
    last = json.loads(journal.read_text().splitlines()[-1])
    assert last["record"]["outcome"]["exit_code"] == 6


def test_a_job_measured_without_perf_and_cgroup_falls_back_and_says_so() -> None:
    report = f"{workplace()}/r.json"
    count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
    forbid = f"{readable_copy()}/forbid.py"
    Path(forbid).write_bytes(Path(ROOT, "tests", "forbid.py").read_bytes())
    words = [interpreter(), forbid, *command_line(["run", "--report", report, "--", "sh", "-c", count], NOBODY)]
    settings = {**environment(), "HOME": workplace()}
    done = subprocess.run(words, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads(Path(report).read_text())
    collectors = record["provenance"]["collectors"]
    assert not collectors["perf"]["available"]
    assert "perf_event_paranoid" in collectors["perf"]["why"]
    assert not collectors["cgroup"]["available"]
    cpu = record["usage"]["cpu_seconds"]
    assert ("rusage_cpu_seconds", "at least") == (cpu["from"], cpu["quality"])
    assert cpu["value"] == pytest.approx(record["measurements"]["proc_cpu_seconds"]["total"], abs=0.03)


def test_a_clock_that_is_set_back_does_not_touch_durations() -> None:
    folder = workplace()
    arguments = ["run", "--quiet", "--store", folder, "--report", f"{folder}/r.json", "--", "sleep", "0.5"]
    body = (
        "import sys, time\n"
        "real, calls = time.time, []\n"
        "def set_back():\n"
        "    calls.append(1)\n"
        "    return real() - 3600 * len(calls)\n"
        "time.time = set_back\n"
        "from jobmeter.cli.main import main\n"
        f"sys.exit(main({arguments}))\n"
    )
    done = subprocess.run([interpreter(), "-c", body], env=environment(), check=False)
    record = json.loads(Path(folder, "r.json").read_text())
    assert done.returncode == 0
    assert 0.5 <= record["wall_seconds"] < 5
    assert record["ended"] < record["started"]


def test_a_command_line_that_is_not_utf8_is_kept_and_readable() -> None:
    folder = workplace()
    words = command_line(["run", "--quiet", "--store", folder, "--report", f"{folder}/r.json", "--", "printf", "%s"])
    done = subprocess.run([*map(os.fsencode, words), b"\xff\xfe"], env=environment(), capture_output=True, check=True)
    assert done.stdout == b"\xff\xfe"
    record = json.loads(Path(folder, "r.json").read_text())
    assert to_bytes(record["command"][2]) == b"\xff\xfe"


def test_odd_process_names_are_text() -> None:
    rename = (
        "import ctypes, time\n"
        "ctypes.CDLL(None).prctl(15, b'a) R 1\\n(b \\xff', 0, 0, 0)\n"
        "t = time.process_time()\n"
        "while time.process_time() < t + 0.3: pass\n"
    )
    done = meter(
        "sh", "-c", f'{interpreter()} -c "$0"; :', rename, options=["--measurements", "default,proc_cmd,proc_state"]
    )
    assert done.exit_code == 0
    assert done.record["measurements"]["proc_cpu_seconds"]["total"] >= 0.3
    for entry in done.record["processes"]:
        assert entry["cmd"].encode()  # text of any encoding's bytes, without lone surrogates


def test_stderr_that_is_closed_does_not_change_the_exit_code() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" 2>&-', "sh", *command_line(["run", "--store", workplace(), "--", "sh", "-c", "exit 9"])],
        env=environment(), check=False, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 9


def test_capture_keeps_a_copy_and_shows_the_output() -> None:
    folder = workplace()
    done = jobmeter("run", "--quiet", "--capture", f"{folder}/out", "--", "sh", "-c", "echo one; echo two >&2; exit 2")
    assert (2, "one\n", "two\n") == (done.returncode, done.stdout, done.stderr)
    assert Path(folder, "out", "stdout").read_text() == "one\n"
    assert Path(folder, "out", "stderr").read_text() == "two\n"


def test_output_that_is_captured_arrives_whole() -> None:
    folder = workplace()
    done = jobmeter("run", "--quiet", "--capture", folder, "--", "seq", "200000")
    expected = "".join(f"{n}\n" for n in range(1, 200001))
    assert (expected, expected) == (done.stdout, Path(folder, "stdout").read_text())


def test_processes_that_vanish_while_they_are_read_cost_nothing() -> None:
    body = "end=$(($(date +%s) + 2)); while [ $(date +%s) -lt $end ]; do (true) & (true) & (true) & done; wait"
    done = meter("sh", "-c", body, options=["--interval", "0.01", "--measurements", "all"])
    assert done.exit_code == 0
    for name, collector in done.record["provenance"]["collectors"].items():
        assert "failed" not in collector, name


def test_a_stopped_job_can_be_cancelled() -> None:
    process = subprocess.Popen(
        command_line(["run", "--quiet", "--", "sh", "-c", "echo $$; kill -STOP $$; sleep 100"]),
        env={**environment(), "HOME": workplace()}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.3)
    process.terminate()
    time.sleep(1.2)
    process.terminate()
    assert process.wait(20) in (137, 143)
    process.stdout.close()
