"""The registry: which engines there are, and what becomes of one that cannot be used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.packages import install, install_pipe
from tests.workflow.live import LONG, Place

SPEC = "name: trivial\njobs: [{name: a, command: touch begun}]\n"
BASE = """
from jobmeter.engines.contract import *
from jobmeter.engines.local import LocalEngine
from jobmeter.errors import LaunchError

class Base(LocalEngine):
    pass
"""


class Shell:
    """Where packages are installed, and `jobmeter` is called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages = folder / "packages"
        self._environment = Place(folder).environment()
        (folder / "spec.yaml").write_text(SPEC)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "jobmeter", *arguments]
        return subprocess.run(
            words, env=self._environment, cwd=self.folder, capture_output=True, text=True, check=False, timeout=LONG
        )

    def run(self, engine: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self("workflow", "run", "spec.yaml", "--engine", engine, *options)

    @property
    def begun(self) -> bool:
        return (self.folder / "begun").exists()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_an_engine_of_another_package_is_used_by_its_name_with_options_of_its_own(shell: Shell) -> None:
    install_pipe(shell.packages)
    done = shell.run("pipe", "--workers", "1")
    assert (0, True) == (done.returncode, shell.begun), done.stderr
    assert "--workers N" in shell.run("pipe", "--help").stdout
    refused = shell("workflow", "run", "spec.yaml", "--workers", "1")
    assert (2, 1) == (refused.returncode, refused.stderr.count("\n"))


def test_an_unknown_engine_is_refused_with_the_nearest_name(shell: Shell) -> None:
    install_pipe(shell.packages)
    for given, hint in (
        ("lokal", "Did you mean 'local'?"),
        ("pip", "Did you mean 'pipe'?"),
        ("x", "local, celery, ray, pipe."),
    ):
        done = shell.run(given)
        assert 2 == done.returncode
        assert done.stderr.startswith(f"jobmeter: --engine: there is no engine {given!r}. ")
        assert done.stderr.endswith(f"{hint}\n")
        assert 1 == done.stderr.count("\n")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import nowhere", "engine bad of broken cannot be used: ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit(0)", "engine bad of broken cannot be used: it called sys.exit while it was loaded"),
        ("class Engine: pass", "engine bad of broken cannot be used: TypeError: Engine() takes no arguments"),
        (
            "class Engine(Base):\n    start = None",
            "engine bad of broken cannot be used: it has no method 'start'",
        ),
        ("class Engine(Base):\n    capabilities = 3", "engine bad of broken cannot be used: its capabilities"),
        (
            "class Engine(Base):\n    def capacity(self): return 1 / 0",
            "engine bad of broken failed: ZeroDivision",
        ),
        ("class Engine(Base):\n    def open(self, receiver): None.x", "engine bad of broken failed: Attribute"),
        ("class Engine(Base):\n    def check(self, r=()): raise LaunchError('no server')", "no server"),
    ],
)
def test_an_engine_that_cannot_be_used_is_one_line_and_nothing_starts(shell: Shell, code: str, says: str) -> None:
    install(shell.packages, "broken", BASE + code, bad="Engine")
    done = shell.run("bad")
    assert done.returncode in (2, 125)
    assert done.stderr.startswith(f"jobmeter: {says}"), done.stderr
    assert (1, False) == (done.stderr.count("\n"), shell.begun)


def test_doctor_lists_every_engine_and_why_one_cannot_be_used(shell: Shell) -> None:
    install_pipe(shell.packages)
    install(shell.packages, "broken", "import nowhere", bad="Engine")
    reason = "class Engine(Base):\n    def check(self, r=()): raise LaunchError('no server at ten:1')"
    install(shell.packages, "lonely", BASE + reason, lonely="Engine")
    findings = {each["subject"]: each for each in json.loads(shell("doctor", "--json").stdout)}
    assert (True, True) == (findings["engine local"]["good"], findings["engine pipe"]["good"])
    assert "cpus" in findings["engine local"]["says"]
    assert (False, "no server at ten:1") == (findings["engine lonely"]["good"], findings["engine lonely"]["says"])
    assert "No module named 'nowhere'" in findings["engine bad"]["says"]
