"""The man page is made from the help, and groff has nothing to complain about."""

from __future__ import annotations

import os
import shutil
import subprocess

from scripts import make_man

from jobmeter.cli.main import COMMANDS
from tests.parts import missing


def rendered(*words: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(words[0]) is None:
        missing(f"{words[0]} is not installed")
    settings = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}
    return subprocess.run(words, env=settings, capture_output=True, text=True, check=False)


def test_it_is_what_the_help_of_the_commands_makes() -> None:
    assert make_man.PAGE.read_text() == make_man.page(), "python3 scripts/embed_help.py"


def test_groff_warns_of_nothing() -> None:
    done = rendered("groff", "-ww", "-man", "-Tutf8", str(make_man.PAGE))
    assert (0, "") == (done.returncode, done.stderr)


def test_man_shows_every_command_and_its_options() -> None:
    done = rendered("man", "--warnings", "-l", str(make_man.PAGE))
    assert (0, "") == (done.returncode, done.stderr)
    for name in COMMANDS:
        assert f"jobmeter {name}" in done.stdout, name
    for words in ("--older-than TIME", "JOBMETER_STORE", "EXIT STATUS"):
        assert words in done.stdout
