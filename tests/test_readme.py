"""The README, followed from top to bottom on a fresh clone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doc_examples import blocks, parse_block
from tests.parts import missing
from tests.running import ROOT
from tests.waiting import LONG

README = Path(ROOT, "README.md")
_ELSEWHERE = ("make test", "jobmeter run --container")
"""All tests, of which this is one; and what needs an image from a registry: see tests/cli/test_run_container.py."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone after `make demo`."""
    folder = tmp_path_factory.mktemp("fresh") / "jobmeter"
    if not Path(ROOT, ".git").exists():
        missing("this is no clone of git")
    subprocess.run(["git", "clone", "--quiet", f"file://{ROOT}", str(folder)], check=True)
    done = in_shell(folder, f"make PYTHON={sys.executable} demo")
    assert done.returncode == 0, done.stdout
    assert "jobmeter: demo completed after" in done.stdout
    return folder


def in_shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    others = ("JOBMETER_", "XDG_", "VIRTUAL")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env={**inherited, "HOME": str(folder.parent)}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False, timeout=10 * LONG,
    )  # fmt: skip


def commands() -> Iterator[tuple[str, int]]:
    """Every command of the page with its exit code, in order."""
    for language in ("sh", "console"):
        for block in blocks(README, language):
            if language == "sh":
                yield from ((line.partition("  #")[0].strip(), 0) for line in block.text.splitlines())
            else:
                yield from ((each.command, each.exit_code) for each in parse_block(block.text, block.exit_code))


def test_every_command_works_after_make_demo(clone: Path) -> None:
    exports: list[str] = []
    tried = 0
    for command, exit_code in commands():
        if command.startswith(_ELSEWHERE) or command == "make demo":
            continue
        if command.startswith("export "):
            exports.append(command)
        done = in_shell(clone, "\n".join([*exports, command]))
        assert (exit_code, False) == (done.returncode, "Traceback" in done.stdout), f"$ {command}\n{done.stdout}"
        tried += 1
    assert tried > 15
    assert exports


def test_the_python_of_the_page_works(clone: Path) -> None:
    for block in blocks(README, "python"):
        done = subprocess.run(
            [str(clone / ".venv/bin/python"), "-c", block.text], cwd=clone, capture_output=True, text=True, check=False,
            env={**os.environ, "JOBMETER_STORE": str(clone / ".demo")}, timeout=LONG,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
