"""The documentation cannot drift: help is embedded, commands and code in it are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import embed_api
from scripts.embed_help import embedded, pages, undocumented

from jobmeter.settings import SETTINGS
from tests.running import ROOT, environment, workplace
from tests.waiting import LONG

README = Path(ROOT, "README.md")
PAGES = [README, *pages()]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    return [content for found, content in FENCED.findall(page.read_text()) if found == language]


def having(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def named(page: Path) -> str:
    return page.name


@pytest.fixture
def sandbox() -> tuple[str, dict[str, str]]:
    """A directory as the examples expect it, and an environment in which `jobmeter` is this one."""
    folder = workplace()
    os.symlink(f"{ROOT}/examples", f"{folder}/examples")
    Path(folder, "Makefile").write_text("all:\n\t@:\n")
    os.mkdir(f"{folder}/bin")
    Path(folder, "bin", "jobmeter").write_text(f'#!/bin/sh\nexec {sys.executable} -m jobmeter "$@"\n')
    os.chmod(f"{folder}/bin/jobmeter", 0o755)
    path = f"{folder}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return folder, {**environment(), "HOME": folder, "PATH": path}


def test_every_command_has_a_page_with_its_help() -> None:
    assert undocumented() == []


@pytest.mark.parametrize("page", pages(), ids=named)
def test_embedded_help_is_what_the_command_prints(page: Path) -> None:
    assert page.read_text() == embedded(page.read_text()), "python3 scripts/embed_help.py"


def test_the_api_page_is_made_from_the_docstrings() -> None:
    assert embed_api.PAGE.read_text() == embed_api.embedded(embed_api.PAGE.read_text()), "python3 scripts/embed_api.py"


def test_every_variable_that_is_read_is_documented() -> None:
    read: set[str] = set()
    for path in Path(ROOT, "src").rglob("*.py"):
        read |= set(re.findall(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"", path.read_text()))
    read |= {setting.environment for setting in SETTINGS.values() if setting.environment is not None}
    described = set(re.findall(r"`([A-Z_]{4,})`", Path(ROOT, "docs", "environment.md").read_text()))
    assert {"JOBMETER_STORE", "XDG_DATA_HOME"} <= read
    assert read - {"PATH", "PYTHONPATH"} <= described


def test_the_settings_that_are_documented_are_those_there_are() -> None:
    page = Path(ROOT, "docs", "environment.md").read_text()
    table = dict(re.findall(r"^\| `([a-z]+)` \| `--[a-z]+` \| (`[A-Z_]+`)?", page, re.MULTILINE))
    assert table == {name: f"`{each.environment}`" if each.environment else "" for name, each in SETTINGS.items()}


@pytest.mark.parametrize("page", having("console"), ids=named)
def test_commands_that_are_shown_work(page: Path, sandbox: tuple[str, dict[str, str]]) -> None:
    folder, settings = sandbox
    for block in blocks(page, "console"):
        for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=folder,
                env=settings,
                capture_output=True,
                text=True,
                check=False,
                timeout=LONG,
            )
            assert done.returncode in (0, 1), f"{line}\n{done.stderr}"
            assert "Traceback" not in done.stderr, line


@pytest.mark.parametrize("page", having("python"), ids=named)
def test_python_that_is_shown_works(page: Path, sandbox: tuple[str, dict[str, str]]) -> None:
    folder, settings = sandbox
    for block in blocks(page, "python"):
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=folder,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONG,
        )
        assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
