"""A locale whose encoding is not UTF-8 breaks no command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import missing
from tests.running import ROOT
from tests.waiting import LONG

LATIN = "de_DE.ISO-8859-1"
NAME = "Gr\u00f6\u00dfe"  # Latin-1 has all of it
FOREIGN = "\u65e5\u672c"  # and nothing of this
SPEC = f"""
name: {NAME} {FOREIGN}
resource_monitor: {{granularity: time_series, sample_interval_seconds: 0.05, generate_plots: true}}
jobs:
  - name: {FOREIGN}
    command: "printf '%s' {FOREIGN} > {FOREIGN}.txt; sleep 0.3"
    resource_requirements: {{memory: 1m}}
"""


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with the locale, for LOCPATH."""
    if shutil.which("localedef") is None or not os.path.exists("/usr/share/i18n/locales/de_DE"):
        missing("the package `locales` is not installed")
    folder = tmp_path_factory.mktemp("locales")
    command = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(folder / LATIN)]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
    return str(folder)


class Place:
    """A directory with a spec, a store and a terminal of this locale."""

    def __init__(self, folder: Path, locales: str) -> None:
        self.folder = folder
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("JOBMETER_", "XDG_", "LC_"))
        }
        self._variables = {
            **inherited, "LOCPATH": locales, "LC_ALL": LATIN, "PYTHONUTF8": "0", "PYTHONPATH": f"{ROOT}/src",
            "JOBMETER_STORE": str(folder / "store"), "HOME": str(folder),
        }  # fmt: skip
        (folder / "spec.yaml").write_text(SPEC, encoding="utf-8")

    def __call__(self, *words: str) -> tuple[int, str]:
        """`jobmeter WORDS`, typed in Latin-1: exit code and all that was printed."""
        encoded = [os.fsencode(sys.executable), b"-m", b"jobmeter", *(word.encode("latin-1") for word in words)]
        done = subprocess.run(
            encoded, cwd=self.folder, env=self._variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, check=False, timeout=LONG,
        )  # fmt: skip
        return done.returncode, done.stdout.decode("latin-1")


@pytest.fixture
def place(tmp_path: Path, locales: str) -> Place:
    return Place(tmp_path, locales)


def test_names_are_printed_in_the_encoding_of_the_terminal(place: Place) -> None:
    assert 0 == place("run", "--quiet", "--name", NAME, "--label", f"k={NAME}", "--", "true")[0]
    for words in (["ls"], ["ls", NAME], ["show", NAME], ["stats", NAME], ["label", NAME]):
        code, printed = place(*words)
        assert (0, True) == (code, NAME in printed), (words, printed)


def test_jobs_of_a_spec_have_the_bytes_of_the_spec(place: Place) -> None:
    code, printed = place("workflow", "run", "spec.yaml")
    assert (0, True, True) == (code, NAME in printed, r"\u65e5\u672c" in printed), printed
    assert FOREIGN.encode() == (place.folder / os.fsdecode(f"{FOREIGN}.txt".encode())).read_bytes()


def test_no_command_prints_a_traceback(place: Place) -> None:
    for words in (
        ["workflow", "run", "--dry-run", "spec.yaml"], ["workflow", "run", "spec.yaml"],
        ["run", "--name", NAME, "--report", f"{NAME}.json", "--capture", NAME, "--", "echo", NAME],
        ["workflow", "status"], ["workflow", "results"], ["workflow", "list"], ["workflow", "graph"],
        ["workflow", "graph", "--html", "graph.html"], ["workflow", "resume"], ["workflow", "results", "--json"],
        ["ls"], ["ls", "--csv"], ["ls", "--json"], ["show"], ["show", "--json"], ["stats"],
        ["check", "--all", "--exit-zero"], ["check", "--fix", "spec.yaml", "--diff", "--exit-zero"],
        ["size", "*"], ["size", "*", "--apply", "spec.yaml", "--diff"], ["export"], ["export", "--windows"],
        ["plot", NAME, "-o", "pages"], ["plot", NAME, "--format", "svg", "-o", "pages"],
        ["export", "-o", f"{NAME}.csv"], ["export", "-o", f"{NAME}.db"], ["export", "--records", "-o", "runs.jsonl"],
        ["import", "runs.jsonl"], ["import", "--store", "other", "."], ["label", "last", f"a={NAME}"],
        ["measurements"], ["doctor"], ["schema"], ["completion", "bash"], ["__complete", "show", ""],
        ["compare", "last", "last"], ["gc", "--older-than", "1ms", "--dry-run"], ["rm", "--yes", "last"], ["--help"],
    ):  # fmt: skip
        code, printed = place(*words)
        assert "Traceback" not in printed, (words, printed)
        assert code in (0, 2), (words, printed)


def test_a_name_that_the_encoding_lacks_is_one_line_with_advice(place: Place) -> None:
    assert 0 == place("workflow", "run", "--quiet", "spec.yaml")[0]
    code, printed = place("plot", "-o", "pages")
    assert (2, 1) == (code, len(printed.splitlines())), printed
    assert printed.startswith("jobmeter: the encoding latin-1 of this locale has no ")
