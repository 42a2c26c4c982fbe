"""Completion: what a word may become, and the scripts in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jobmeter.cli.complete import candidates
from jobmeter.cli.main import COMMANDS, main
from jobmeter.cli.shared.filters import STATUSES
from jobmeter.cli.shared.stored_names import run_names
from tests.cli.listing import Commands
from tests.parts import missing
from tests.running import environment
from tests.runs import record
from tests.terminal import Terminal


@pytest.fixture
def stored(jobmeter: Commands, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with runs of three names, and two workflows."""
    jobmeter.keep(record("aaa1", "train"), record("aab2", "train"), record("bbb3", "test"), record("ccc4", "two words"))
    for name in ("sweep", "nightly"):
        (jobmeter.folder / "workflows" / name / "1").mkdir(parents=True)
    jobmeter("ls")
    monkeypatch.setenv("JOBMETER_STORE", str(jobmeter.folder))
    return jobmeter.folder


def become(*words: str) -> list[str]:
    return [candidate for candidate, _ in candidates(list(words))]


def test_commands() -> None:
    assert list(COMMANDS) == become("")
    assert ["show"] == become("sho")
    assert [] == become("nonsense", "")
    assert ["run", "resume", "results"] == [
        word for word in become("workflow", "r") if word in ("run", "resume", "results")
    ]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("workflow", "schema")])
def test_every_command_offers_its_options(command: str) -> None:
    options = become(command, "--")
    assert "--help" in options
    assert all(option.startswith("--") for option in options)


def test_values_of_options(stored: Path) -> None:
    assert list(STATUSES) == become("ls", "--status", "")
    assert ["failed"] == become("ls", "--status", "fa")
    assert ["--status=failed"] == become("ls", "--status=fa")
    assert ["failed"] == become("ls", "--status", "=", "fa")  # as bash splits it
    assert ["csv", "json", "jsonl", "parquet", "sqlite"] == become("export", "--format", "")
    assert ["name,memory_quality"] == become("ls", "--fields", "name,memory_q")
    assert ["bash", "zsh", "fish"] == become("completion", "")
    assert [":directories"] == become("ls", "--store", "x")
    assert [":files"] == become("export", "-o", "x")


@pytest.mark.parametrize("command", ["show", "rm", "export", "label", "plot"])
def test_runs_by_name_and_by_id(stored: Path, command: str) -> None:
    assert {"test", "train", "two words", "last"} <= set(become(command, ""))
    assert ["train"] == become(command, "tr")
    assert {"aaa1", "aab2"} == set(become(command, "aa"))


def test_names_in_the_place_of_options_values(stored: Path) -> None:
    assert ["train"] == become("ls", "--name", "tr")
    assert ["train"] == become("stats", "--json", "tr")
    assert [] == become("show", "train", "t")  # it takes one
    for words in (("study", "--metric"), ("container", "info"), ("schema",), ("data", "get")):
        assert [] == become(*words, "tr")  # other kinds of names


def test_workflows_and_specs(stored: Path) -> None:
    assert ["sweep"] == become("workflow", "status", "sw")
    assert ["nightly", "sweep"] == become("workflow", "results", "")
    assert ":files" in become("workflow", "run", "")


@pytest.mark.no_records
def test_a_journal_that_has_just_begun_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    for number in range(10):
        text = "" if number % 2 else f'{{"schema": "jobmeter.run/1", "name": "run{number}"}}\n'
        (tmp_path / "journal" / f"{number}.jsonl").write_text(text)
    assert [f"run{number}" for number in range(0, 10, 2)] == sorted(run_names(str(tmp_path), "run"))


def test_a_run_that_is_not_indexed_yet_is_offered(stored: Path, jobmeter: Commands) -> None:
    assert 0 == main(["run", "--quiet", "--store", str(stored), "--name", "fresh", "--", "true"])
    later = (stored / "index.db").stat().st_mtime + 5
    for path in (stored / "journal", *(stored / "journal").iterdir()):
        if path.is_dir() or b'"fresh"' in path.read_bytes():
            os.utime(path, (later, later))
    assert ["fresh"] == become("show", "fr")


def test_the_words_of_a_job_are_the_shells_own() -> None:
    assert [":commands"] == become("run", "--", "l")
    assert [":commands"] == become("run", "--memory", "1g", "l")
    assert [":files"] == become("run", "--", "cat", "x")
    assert "--memory" in become("run", "--mem")


def test_without_a_store_and_with_a_damaged_one_there_is_no_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ["last"] == become("show", "--store", str(tmp_path / "none"), "")
    (tmp_path / "index.db").write_bytes(b"SQLite format 3\0 and no more")
    assert ["last"] == become("show", f"--store={tmp_path}", "")
    assert "" == capfd.readouterr().err


def test_names_that_control_a_terminal_are_left_out(
    jobmeter: Commands, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    jobmeter.keep(record("aaa1", "x\x1b[31m"), record("bbb2", "xyz"), record("ccc3", "x\ny"))
    jobmeter("ls")
    monkeypatch.setenv("JOBMETER_STORE", str(jobmeter.folder))
    assert 0 == main(["__complete", "show", "x"])
    assert "xyz\n" == capfd.readouterr().out


def test_nothing_heavy_is_loaded(stored: Path) -> None:
    program = (
        "import sys; from jobmeter.cli.main import main; main(['__complete', 'show', 'tr']); "
        "print([name for name in ('sqlalchemy', 'rich', 'pydantic', 'plotly') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**environment(), "JOBMETER_STORE": str(stored)}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert ["train", "[]"] == done.stdout.splitlines()


class Shell:
    """A real shell in which `jobmeter` is this one."""

    def __init__(self, name: str, folder: Path, store: Path) -> None:
        if shutil.which(name) is None:
            missing(f"{name} is not installed")
        self.name = name
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "jobmeter"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m jobmeter "$@"\n')
        program.chmod(0o755)
        self.script = folder / f"jobmeter.{name}"
        with self.script.open("w") as file:
            words = [sys.executable, "-m", "jobmeter", "completion", name]
            subprocess.run(words, env=environment(), stdout=file, check=True)
        self.environment = {
            **environment(),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "JOBMETER_STORE": str(store),
        }

    def output(self, *words: str) -> list[str]:
        done = subprocess.run(words, env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False)
        assert (0, "") == (done.returncode, done.stderr), done
        return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sho"], ["show"]),
        (["ls", "tr"], ["train"]),
        (["show", "two"], [r"two\ words"]),
        (["ls", "--status", "=", "fa"], ["failed"]),
        (["workflow", "status", "sw"], ["sweep"]),
        (["export", "-o", "jobmeter.b"], ["jobmeter.bash"]),
        (["run", "--", "jobmet"], ["jobmeter"]),
    ],
)
def test_bash(stored: Path, tmp_path: Path, words: list[str], expected: list[str]) -> None:
    shell = Shell("bash", tmp_path, stored)
    program = (
        f"source {shell.script}; compopt() {{ :; }}; COMP_WORDS=(jobmeter {' '.join(words)}); "
        f'COMP_CWORD={len(words)}; _jobmeter jobmeter; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    assert expected == sorted(set(shell.output("bash", "--norc", "-c", program)))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("jobmeter sho", "show"),
        ("jobmeter ls tr", "train"),
        ("jobmeter workflow status sw", "sweep"),
        ("jobmeter ls --status=fa", "--status=failed"),
        ("jobmeter export -o jobmeter.f", "jobmeter.fish"),
    ],
)
def test_fish(stored: Path, tmp_path: Path, line: str, expected: str) -> None:
    shell = Shell("fish", tmp_path, stored)
    lines = shell.output("fish", "--no-config", "-c", f"source {shell.script}; complete -C '{line}'")
    assert [expected] == [each.partition("\t")[0] for each in lines]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_tab_key_in_a_terminal(stored: Path, tmp_path: Path, name: str) -> None:
    shell = Shell(name, tmp_path, stored)
    words = {
        "bash": ["bash", "--norc", "--noprofile", "-i"],
        "zsh": ["zsh", "-f", "-i"],
        "fish": ["fish", "--no-config", "-i"],
    }[name]
    session = Terminal(words, {**shell.environment, "PS1": "> "}, cwd=tmp_path, columns=120)
    prepare = {"zsh": "autoload -Uz compinit && compinit -u; "}.get(name, "")
    sum_ = "(math 6 x 7)" if name == "fish" else "$((6 * 7))"
    session.press(f"{prepare}source {shell.script}; echo loaded-{sum_}\n")
    session.wait_for("loaded-42")
    session.press("jobmeter label tra\tteam=b\n")
    session.wait_for("label train")
    session.wait_for("team=b\r\n")  # what the command printed: the name was whole
    session.press("exit\n")
    session.finish()
