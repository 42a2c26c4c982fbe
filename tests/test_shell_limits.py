"""Few descriptors, little memory, few processes: every command answers, or fails in one line."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.exchange.reading import FIXTURES
from tests.parts import need_root
from tests.running import ROOT, environment_with_packages, interpreter, workplace
from tests.store.kept import five, kept
from tests.waiting import LONG

COMMANDS = (
    ("ls",), ("show", "aaa1"), ("stats",), ("check", "--exit-zero"), ("size", "train"), ("export", "--windows"),
    ("compare", "aaa1", "ccc4"), ("plot", "aaa1", "-o", "@/plots"), ("label", "aaa1", "a=b"), ("rm", "--yes", "bbb3"),
    ("gc", "--older-than", "9999d"), ("import", "@/sacct.txt"), ("doctor",), ("measurements",),
    ("workflow", "run", "@/spec.yaml"), ("workflow", "list"), ("completion", "bash"), ("schema",),
)  # fmt: skip
SPEC = "name: w\njobs: [{name: a, command: 'true'}, {name: b, command: 'true'}]"


@pytest.fixture
def folder() -> Path:
    """A store of five runs, a spec and a file to import, which every user may change."""
    folder = Path(workplace())
    kept(folder / "store", *five())
    (folder / "spec.yaml").write_text(SPEC)
    (folder / "sacct.txt").write_bytes((FIXTURES / "sacct.txt").read_bytes())
    return folder


def check(folder: Path, start: list[str], python: str, limit: Callable[[], None] | None = None) -> None:
    settings = {**os.environ, "HOME": str(folder), "JOBMETER_STORE": str(folder / "store"), "PYTHONPATH": python}
    for words in COMMANDS:
        command = [*start, "-m", "jobmeter", *(word.replace("@", str(folder)) for word in words)]
        done = subprocess.run(
            command,
            env=settings,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONG,
            preexec_fn=limit,
        )
        assert "Traceback" not in done.stderr, (words, done.stderr)
        assert done.returncode in (0, 1, 125), (words, done)
        # `rm` lists what goes before it removes anything.
        lines = [line for line in done.stderr.splitlines() if not line.startswith("  ")]
        errors = [line for line in lines if "index in memory" not in line]
        assert done.returncode < 125 or (len(errors) == 1 and errors[0].startswith("jobmeter: ")), (words, done)
    # None of them has lost a run, whatever else they did.
    done = subprocess.run(
        [sys.executable, "-m", "jobmeter", "ls", "--limit", "0", "--json"],
        env={**settings, "PYTHONPATH": f"{ROOT}/src"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert all(f'"{run_id}"' in done.stdout for run_id in ("aaa1", "aab2", "ccc4", "ddd5"))


@pytest.mark.parametrize("files", [6, 10, 20])
def test_few_descriptors_break_no_command(folder: Path, files: int) -> None:
    limit = (files, files)
    check(folder, [sys.executable], f"{ROOT}/src", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))


@pytest.mark.parametrize("megabytes", [48, 100, 200])
def test_little_memory_breaks_no_command(folder: Path, megabytes: int) -> None:
    limit = (megabytes << 20, megabytes << 20)
    check(folder, [sys.executable], f"{ROOT}/src", lambda: resource.setrlimit(resource.RLIMIT_AS, limit))


@pytest.mark.parametrize("processes", [1, 3])
def test_few_processes_break_no_command(folder: Path, processes: int) -> None:
    need_root("to become a user without other processes")
    subprocess.run(["chown", "-R", "61235:61235", str(folder)], check=True)
    user = ["setpriv", "--reuid=61235", "--regid=61235", "--clear-groups", "prlimit", f"--nproc={processes}"]
    check(folder, [*user, interpreter()], environment_with_packages()["PYTHONPATH"])
