"""`run --auto-size`: the advised request, and another attempt where it was not enough."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.parts import need_root
from tests.waiting import wait_for

MIB = 2**20
LOAD = "import sys, time; x = b'x' * (int(sys.argv[1]) << 20); time.sleep(0.3); print('done')"


def run(store: Path, size: int, *options: str, code: str = LOAD) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jobmeter", "run", "--store", str(store), "--name", "load", *options]
    words = [*command, "--", sys.executable, "-c", code, str(size)]
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=300)


def runs(store: Path) -> list[dict[str, Any]]:
    """Newest first."""
    command = [sys.executable, "-m", "jobmeter", "ls", "--json", "--fields", "all", "--store", str(store)]
    listed: list[dict[str, Any]] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return listed


def test_without_a_past_it_runs_as_requested_and_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, 20, "--auto-size", "--enforce")
    assert (0, "done\n") == (done.returncode, done.stdout), done.stderr
    assert "no run of 'load' has completed" in done.stderr


def test_the_request_follows_the_input_and_the_run_is_labelled_with_it(tmp_path: Path) -> None:
    for size in (20, 40, 60, 80, 100, 120):
        assert 0 == run(tmp_path, size, "--quiet", "--label", f"bytes={size * MIB}").returncode
    (tmp_path / "input").write_bytes(b"x" * 50 * MIB)
    done = run(tmp_path, 50, "--auto-size", "--input", str(tmp_path / "input"))
    assert 0 == done.returncode, done.stderr
    newest = runs(tmp_path)[0]
    assert str(50 * MIB) == newest["labels"]["bytes"]
    assert newest["memory_peak_bytes"] <= newest["requirement_memory_bytes"] < 2 * newest["memory_peak_bytes"]


def test_what_runs_out_of_memory_is_tried_again_with_more(tmp_path: Path) -> None:
    need_root("a hard limit of memory")
    for _ in range(3):
        assert 0 == run(tmp_path, 20, "--quiet").returncode
    done = run(tmp_path, 60, "--auto-size", "--enforce")
    assert (0, "done\n") == (done.returncode, done.stdout), done.stderr
    assert "trying again with memory" in done.stderr
    newest, before = runs(tmp_path)[:2]
    assert ("completed", "oom") == (newest["status"], before["status"])
    assert newest["requirement_memory_bytes"] > before["requirement_memory_bytes"]


def test_a_limit_that_the_user_gave_stays_and_is_met_once(tmp_path: Path) -> None:
    need_root("a hard limit of memory")
    for _ in range(3):
        assert 0 == run(tmp_path, 20, "--quiet").returncode
    done = run(tmp_path, 60, "--auto-size", "--enforce", "--memory", "40m")
    assert (True, False) == (done.returncode != 0, "trying again" in done.stderr)
    newest, before = runs(tmp_path)[:2]
    assert ("oom", "completed", 40 * MIB) == (newest["status"], before["status"], newest["requirement_memory_bytes"])


def test_a_report_may_go_to_a_pipe(tmp_path: Path) -> None:
    assert 0 == run(tmp_path, 20, "--quiet").returncode
    done = run(tmp_path, 20, "--quiet", "--auto-size", "--report", "/dev/stdout")
    output, _, report = done.stdout.partition("\n")
    assert (0, "done") == (done.returncode, output)
    assert "completed" == json.loads(report)["outcome"]["status"]


def test_exit_codes_are_the_jobs_and_nothing_is_tried_again_that_failed_by_itself(tmp_path: Path) -> None:
    assert 0 == run(tmp_path, 20, "--quiet").returncode
    assert 3 == run(tmp_path, 20, "--auto-size", "--quiet", code="raise SystemExit(3)").returncode
    assert 2 == len(runs(tmp_path))


def test_a_signal_reaches_the_job(tmp_path: Path) -> None:
    code = f"import pathlib, time; pathlib.Path('{tmp_path}/began').touch(); time.sleep(600)"
    command = [sys.executable, "-m", "jobmeter", "run", "--store", str(tmp_path), "--name", "load", "--auto-size"]
    process = subprocess.Popen([*command, "--", sys.executable, "-c", code])
    wait_for((tmp_path / "began").exists, "the job runs")
    process.send_signal(signal.SIGTERM)
    assert 128 + signal.SIGTERM == process.wait(60)


@pytest.mark.parametrize(
    ("options", "expected"),
    [(["--input", "/etc/passwd"], "--input: has no effect without --auto-size"),
     (["--auto-size", "--input", "/nowhere"], "--input: /nowhere: No such file"),
     (["--auto-size", "--report", "/nowhere/r.json"], "--report: /nowhere/r.json: cannot be written there")],
)  # fmt: skip
def test_what_cannot_be_used_is_one_clear_line(tmp_path: Path, options: list[str], expected: str) -> None:
    done = run(tmp_path, 1, *options)
    assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    assert expected in done.stderr
