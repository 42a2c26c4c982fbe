"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import jobmeter
from tests.waiting import LONG

TESTS = """
import time
import pytest

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass

def test_burns():
    burn(0.3)

def test_holds():
    held = b"x" * (60 << 20)

def test_fails():
    assert False

@pytest.mark.parametrize("number", range(12))
def test_is_cheap(number):
    pass
"""


def run_pytest(folder: Path, *words: str, code: str = TESTS) -> tuple[int, str]:
    """The exit code and the output of pytest, in a program of its own with the plugin."""
    (folder / "test_it.py").write_text(code)
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin(), *words, "."],
        cwd=folder, capture_output=True, text=True, timeout=LONG, check=False, env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def plugin() -> list[str]:
    """The option that loads the plugin where its entry point is not installed."""
    from importlib.metadata import entry_points

    is_installed = any(point.name == "jobmeter" for point in entry_points(group="pytest11"))
    return [] if is_installed else ["-p", "jobmeter.integrations.pytest_plugin"]


def test_without_the_option_nothing_is_measured_and_little_is_loaded(tmp_path: Path) -> None:
    code = """
import sys
def test_it():
    assert not [name for name in sys.modules if name.startswith(("jobmeter.session", "jobmeter.api", "jobmeter.meter"))]
"""
    exit_code, output = run_pytest(tmp_path, code=code)
    assert 0 == exit_code, output
    assert "costliest" not in output


def test_every_test_is_stored_with_node_id_and_revision_and_the_costliest_are_shown(tmp_path: Path) -> None:
    folder, store = tmp_path / "project", tmp_path / "store"
    folder.mkdir()
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    exit_code, output = run_pytest(folder, "--jobmeter", "--jobmeter-store", str(store))
    assert 1 == exit_code
    summary = output[output.index("costliest of 15 tests measured (jobmeter)") :].splitlines()
    assert ["CPU", "memory", "grew", "by", "wall", "test"] == summary[1].split()
    assert summary[2].endswith("test_it.py::test_burns")
    assert 10 == sum(line.split()[-1].startswith("test_it.py::") for line in summary[2:] if "B " in line)

    runs = list(jobmeter.open_store(store).runs())
    assert 15 == len(runs)
    (burns,) = [run for run in runs if run.name == "test_it.py::test_burns"]
    assert burns.cpu_seconds == pytest.approx(0.3, rel=0.03, abs=0.01)
    revision = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert {"test": "test_it.py::test_burns", "revision": revision} == burns.labels
    (holds,) = [run for run in runs if run.name == "test_it.py::test_holds"]
    assert holds.measured("block_mem_growth")["peak"] == pytest.approx(60 << 20, rel=0.1)
    assert ["failed"] == [run.status for run in runs if run.name == "test_it.py::test_fails"]


def test_it_works_under_xdist(tmp_path: Path) -> None:
    store = tmp_path / "store"
    exit_code, output = run_pytest(tmp_path, "--jobmeter", "--jobmeter-store", str(store), "-n", "2")
    assert 1 == exit_code
    assert "costliest of 15 tests measured (jobmeter)" in output
    runs = list(jobmeter.open_store(store).runs())
    assert 15 == len(runs)
    assert {run.labels["worker"] for run in runs} <= {"gw0", "gw1"}
    assert "test_it.py::test_burns" in {run.labels["test"] for run in runs}


def test_a_marker_fails_the_test_that_uses_more_and_no_other(tmp_path: Path) -> None:
    code = (
        TESTS
        + """
@pytest.mark.jobmeter(memory="50MiB", cpu_seconds=0.1, runtime="0.05s")
def test_uses_more():
    burn(0.2)
    held = b"x" * (70 << 20)

@pytest.mark.jobmeter(memory="500MiB", cpu_seconds=60, runtime="10m")
def test_uses_less():
    held = b"x" * (70 << 20)

@pytest.mark.jobmeter(memory="50MiB")
def test_that_follows_a_large_one():
    held = b"x" * (5 << 20)

@pytest.mark.jobmeter(cpu_seconds=0.01)
def test_fails_by_itself():
    burn(0.1)
    raise KeyError("its own")
"""
    )
    exit_code, output = run_pytest(tmp_path, "-k", "uses or follows or itself", code=code)
    assert 1 == exit_code
    assert "2 failed, 2 passed" in output
    message = next(line for line in output.splitlines() if line.startswith("jobmeter: test_it.py::test_uses_more"))
    assert re.search(r"memory grew by 7\d(\.\d)? MiB, limit 50 MiB; CPU time was 0\.2\d* s, limit 0\.1\d* s", message)
    assert re.search(r"it took \d.*, limit 50 ms", message)
    assert "KeyError: 'its own'" in output
    assert "costliest" not in output


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("memory='2 elephants'", "marker jobmeter: memory: '2 elephants'"),
        ("cpu_seconds=-1", "marker jobmeter: cpu_seconds: '-1' is not a number above 0"),
        ("disk='1g'", "there is no limit 'disk'. Limits are memory, cpu_seconds, runtime."),
        ("'500MiB'", "name its limits, as in jobmeter(memory='500MiB')"),
    ],
)
def test_a_marker_that_is_not_valid_is_one_line(tmp_path: Path, marker: str, message: str) -> None:
    code = f"import pytest\n@pytest.mark.jobmeter({marker})\ndef test_it(): pass\n"
    exit_code, output = run_pytest(tmp_path, code=code)
    assert 4 == exit_code
    (line,) = [line for line in output.splitlines() if line.startswith("ERROR")]
    assert message in line
    assert "Traceback" not in output


def test_a_store_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    exit_code, output = run_pytest(tmp_path, "--jobmeter", "--jobmeter-store", "file")
    assert 4 == exit_code
    (line,) = [line for line in output.splitlines() if line.startswith("ERROR")]
    assert "--jobmeter-store" in line
    assert "Name a directory that can be written" in line
    assert "Traceback" not in output
