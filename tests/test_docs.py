"""The documentation cannot drift: help is embedded, commands and code in it are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.embed_help import embedded, pages, undocumented

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


def test_the_map_of_the_tests_names_every_part_and_only_folders_that_there_are() -> None:
    text = Path(ROOT, "CONTRIBUTING.md").read_text(encoding="utf-8")
    chart = text[text.index("## Where each part is tested") :]
    parts = {path.name for path in Path(ROOT, "src/jobmeter").iterdir() if path.is_dir() and path.name[0] != "_"}
    assert set() == {part for part in parts if f"`{part}/`" not in chart}
    tests = {path.name for path in Path(ROOT, "tests").iterdir() if path.is_dir() and path.name[0] != "_"}
    assert tests == set(re.findall(r"`tests/(\w+)[/`]", chart)) & tests
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?)`", chart)
    assert [] == [path for path in named if not Path(ROOT, path).exists()]
