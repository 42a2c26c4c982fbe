"""Every command that uses a store, in poor surroundings: the right exit code, at most one line, never a traceback."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import ROOT, workplace
from tests.store.kept import five, kept
from tests.waiting import LONG

SPEC = """name: demo
jobs:
  - name: a
    command: echo hello
    resource_requirements: {memory: 1m}
"""
COMMANDS: list[tuple[str, ...]] = [
    ("ls",), ("ls", "--json"), ("show", "train"), ("stats",), ("compare", "aaa1", "aab2"),
    ("check", "--all", "--exit-zero"), ("size", "train"), ("export",), ("plot", "aaa1", "-o", "@"),
    ("import", "@/runs.jsonl"), ("label", "aaa1"), ("label", "aaa1", "x=y"), ("gc", "--older-than", "1d", "--dry-run"),
    ("gc", "--older-than", "1d", "--keep-summary"), ("rm", "--yes", "aaa1"), ("gc", "--older-than", "1d"),
    ("workflow", "run", "--dry-run", "@/flow.yaml"), ("workflow", "run", "--quiet", "@/flow.yaml"),
    ("workflow", "results", "demo"), ("workflow", "status", "demo"), ("workflow", "list"),
    ("check", "demo", "--fix", "@/flow.yaml", "--diff", "--exit-zero"),
    ("size", "demo", "--apply", "@/flow.yaml", "--diff"), ("plan", "@/flow.yaml"), ("ls", "--help"),
]  # fmt: skip
"""`@` is the directory that has the spec and the exported runs."""
EVERY_COMMAND = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


@pytest.fixture(scope="module")
def stored_runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with a store of five runs and a workflow, its spec, and the runs as a file. Tests get a copy."""
    folder = tmp_path_factory.mktemp("stored")
    (folder / "flow.yaml").write_text(SPEC)
    kept(folder / "store", *five())
    for words in (("workflow", "run", "--quiet", "flow.yaml"), ("export", "--records", "-o", "runs.jsonl")):
        subprocess.run(_jobmeter(*words), cwd=folder, env=_variables(folder), check=True)
    return str(folder)


def run_in_store(stored: str, *words: str, before: str = "", after: str = "") -> subprocess.CompletedProcess[str]:
    """`jobmeter WORDS` on a copy of the store, by a shell: what is to be done before, and redirections after it."""
    folder = Path(workplace(), "copy")
    shutil.copytree(stored, folder)
    command = _jobmeter(*(word.replace("@", str(folder)) for word in words))
    return subprocess.run(
        ["sh", "-c", f'{before} "$@" {after}', "sh", *command], cwd=folder, env=_variables(folder),
        capture_output=True, text=True, errors="surrogateescape", check=False, timeout=LONG,
    )  # fmt: skip


def _jobmeter(*words: str) -> list[str]:
    return [sys.executable, "-c", "from jobmeter.cli.main import entry; entry()", *words]


def _variables(folder: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JOBMETER_", "XDG_"))}
    store = {"JOBMETER_STORE": f"{folder}/store", "HOME": str(folder)}
    return {**inherited, **store, "PYTHONPATH": f"{ROOT}/src"}


REMOVE = 'mkdir gone; cd gone; rmdir "$PWD"; '


@EVERY_COMMAND
def test_every_command_answers_in_a_removed_directory(stored_runs: str, words: tuple[str, ...]) -> None:
    done = run_in_store(stored_runs, *words, before=REMOVE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("run", "--report", "r.json", "--", "true"), 2, "--report: r.json: cannot be written there."),
        (("run", "--capture", "out", "--", "true"), 2, "--capture: out: No such file or directory"),
        (("export", "-o", "x.csv"), 2, "-o: x.csv: cannot be written there."),
        (("plot", "train", "-o", "out"), 2, "-o: out: cannot be made: No such file or directory."),
        (("import", "x.csv"), 2, "x.csv: No such file or directory"),
    ],
)
def test_a_relative_path_in_a_removed_directory_is_named(
    stored_runs: str, words: tuple[str, ...], code: int, line: str
) -> None:
    done = run_in_store(stored_runs, *words, before=REMOVE)
    assert (code, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert done.stderr.startswith(f"jobmeter: {line}")


def test_a_relative_store_in_a_removed_directory_costs_the_record_and_not_the_job(stored_runs: str) -> None:
    words = ("run", "--quiet", "--store", "here", "--", "sh", "-c", "exit 5")
    done = run_in_store(stored_runs, *words, before=REMOVE)
    assert (5, True) == (done.returncode, "this run is not stored: here: No such file" in done.stderr), done.stderr


WRITES = {"plot", "import", "label", "rm", "gc", "workflow"}
"""They have something to do besides printing."""


@EVERY_COMMAND
def test_a_reader_that_has_enough_is_no_error(stored_runs: str, words: tuple[str, ...]) -> None:
    done = run_in_store(stored_runs, *words, before="{ ", after='; echo "exit code $?" >&2; } | true')
    *lines, last = done.stderr.splitlines()
    assert last in ("exit code 0", f"exit code {128 + signal.SIGPIPE}")
    assert [] == without_reports(lines)


@EVERY_COMMAND
@pytest.mark.parametrize("output", [">/dev/full", ">&-", ">/dev/full, unbuffered"])
def test_output_that_cannot_be_written_is_one_line(stored_runs: str, words: tuple[str, ...], output: str) -> None:
    redirection, _, buffering = output.partition(", ")
    buffered = f"env PYTHONUNBUFFERED={'1' if buffering else ''}"
    done = run_in_store(stored_runs, *words, before=buffered, after=redirection)
    lines = without_reports(done.stderr.splitlines())
    if done.returncode == 0:  # it has nothing to print there
        assert (True, []) == (words[0] in WRITES, lines)
    else:
        (line,) = lines
        assert (125, True) == (done.returncode, line.startswith("jobmeter: the output cannot be written: "))


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("rm", "aaa1"), 2, "there is no terminal to ask on"),
        (("import", "-"), 2, ""),
        (("data", "set", "d"), 2, ""),
        (("workflow",), 2, "usage: jobmeter workflow"),
    ],
)
def test_closed_streams_are_as_empty_ones(stored_runs: str, words: tuple[str, ...], code: int, expected: str) -> None:
    done = run_in_store(stored_runs, *words, after="<&-")
    assert (code, True, False) == (done.returncode, expected in done.stderr, "Traceback" in done.stderr), done.stderr
    done = run_in_store(stored_runs, *words, after="2>&-")
    assert (code, "") == (done.returncode, done.stderr)


@EVERY_COMMAND
def test_files_that_may_not_grow_break_no_command(stored_runs: str, words: tuple[str, ...]) -> None:
    done = run_in_store(stored_runs, *words, before="ulimit -f 0;")
    lines = [line for line in done.stderr.splitlines() if "this command makes an index in memory" not in line]
    lines = [line for line in lines if not line.startswith("  aaa1")]  # what `rm` is about to remove
    assert all(line.startswith("jobmeter: ") for line in lines), done.stderr
    assert done.returncode in (0, 2, 125)
    if words[0] not in WRITES:
        assert 0 == done.returncode, done.stderr


@pytest.mark.parametrize("variables", ["PYTHONIOENCODING=ascii", "LC_ALL=C PYTHONUTF8=0", "-u HOME"])
@pytest.mark.parametrize("words", [("ls",), ("show", "train"), ("stats",), ("plot", "aaa1", "-o", "@")], ids=" ".join)
def test_no_command_needs_more_of_its_environment(stored_runs: str, words: tuple[str, ...], variables: str) -> None:
    done = run_in_store(stored_runs, *words, before=f"env {variables}")
    assert (0, "") == (done.returncode, done.stderr)


def without_reports(lines: list[str]) -> list[str]:
    """Lines of stderr, less those in which a command says what it did."""
    return [line for line in lines if not re.search(r"^(  aaa1|jobmeter: (removed|.*\bruns\b))", line)]
