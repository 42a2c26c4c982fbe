"""Whatever jobs, labels, files and records contain, nothing of it controls the terminal of who reads it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobmeter.terminal import printable, printable_lines
from tests.cli.listing import Commands, Printed
from tests.running import ROOT, environment
from tests.runs import record
from tests.store.kept import kept
from tests.terminal import Terminal

HOSTILE = "x\x1b]0;t\x07\x1b[31m\x9b2J\r\b\x7f\t\n\x00\u202e\u2066\u2028\udc9b[red]y[b]:smile:"
VISIBLE = HOSTILE.replace("\x00", "")
"""The same as an argument or a part of a path."""
_STYLES = re.compile(r"\x1b\[[0-9;]*[mKAGJ]|\x1b\[\?25[lh]")
"""What rich writes to colour text, and to move and hide the cursor while it shows progress."""

READING = (
    ["ls"], ["ls", "--fields", "all"], ["ls", "--json"], ["ls", "x*"], ["ls", "--fields", "name,labels"],
    ["show", "aaa1"], ["show", "aaa1", "--json"], ["check", "--all", "aaa1", "bbb2"], ["check", "aaa1", "--json"],
    ["check", "ccc3"], ["size", "*"], ["size", "*", "--format", "json"], ["stats"], ["stats", "--json"],
    *(["size", "*", "--format", form] for form in ("yaml", "slurm", "docker", "compose", "k8s", "ray")),
    ["stats", "--by", "k" + VISIBLE], ["compare", "aaa1", "bbb2"], ["compare", "aaa1", "bbb2", "--json"],
    ["label", "aaa1"], ["label", "aaa1", "--json"],
    ["export", "--format", "jsonl"], ["export", "--records"], ["gc", "--older-than", "9999d", "--dry-run"],
)  # fmt: skip
DATA = (["ls", "--csv"], ["stats", "--csv"], ["export"], ["export", "--windows"])
"""CSV: as it is in a pipe, printable on a terminal."""
REFUSED = (
    ["show", VISIBLE + "2"], ["ls", "--where", VISIBLE], ["ls", "--where", f'name = "{VISIBLE}'],
    ["ls", "--sort", VISIBLE],
    ["ls", "--fields", VISIBLE], ["ls", "--since", VISIBLE], ["ls", "--limit", VISIBLE], ["ls", f"--{VISIBLE}"],
    ["ls", "--status", VISIBLE], ["ls", "--label", VISIBLE], ["label", "aaa1", VISIBLE], ["rm", VISIBLE + "2"],
    ["compare", VISIBLE + "2", "aaa1"], ["compare", "aaa1", f"name={VISIBLE}2"], ["check", VISIBLE + "2"],
    ["size", VISIBLE + "2"], ["plot", "-o", f"/proc/{VISIBLE}", "aaa1"], ["export", "-o", f"/proc/{VISIBLE}/x.csv"],
    ["export", "--format", VISIBLE], ["import", VISIBLE], ["import", "--from", VISIBLE, "/dev/null"],
    ["gc", "--older-than", VISIBLE],
)  # fmt: skip


def hostile_run(run_id: str, status: str = "completed", **fields: Any) -> Any:
    run: Any = record(run_id, HOSTILE, status, labels={"k" + VISIBLE: HOSTILE}, **fields)
    run["command"] = [HOSTILE, HOSTILE]
    run["cwd"] = run["user"] = HOSTILE
    run["host"] = {**run.get("host", {}), "name": HOSTILE, "kernel": HOSTILE}
    run["processes"] = [{"pid": 1, "cmd": HOSTILE, "cpu_seconds": 1.0}]
    run["provenance"]["container"] = {"image": HOSTILE, "name": HOSTILE, "engine": HOSTILE, "engine_version": HOSTILE}
    run["provenance"]["imported"] = {"from": HOSTILE, "where": HOSTILE}
    for figure in run["usage"].values():
        figure["from"] = HOSTILE
    return run


def make_store(folder: Path) -> None:
    kept(
        folder,
        hostile_run("aaa1", "oom", wall_seconds=10.0, memory_peak_bytes=5 << 30, requirement={"memory_bytes": 1 << 30}),
        hostile_run("bbb2", wall_seconds=12.0, memory_peak_bytes=1 << 30, requirement={"memory_bytes": 9 << 30}),
        hostile_run("ccc3", "failed", wall_seconds=12.0),
    )
    # One that cannot be read, of such a name: each command warns of it.
    (folder / "journal" / f"{VISIBLE}.jsonl".replace("\udc9b", "")).write_bytes(b"no journal\n")


def assert_harmless(printed: Printed, words: Sequence[str]) -> None:
    for text in (printed.out, printed.err):
        assert text.replace("\n", "").isprintable(), (words, text)


def test_what_is_not_visible_is_spelt() -> None:
    assert r"a\x1b[31m\n\u202e\x9b�9b é [red]" == printable("a\x1b[31m\n\u202e\x9b\udc9b é [red]")
    assert "a\nb\\r" == printable_lines("a\nb\r")


@pytest.mark.no_records
def test_no_command_that_reads_prints_a_control_character(jobmeter: Commands) -> None:
    make_store(jobmeter.folder)
    for words in READING:
        printed = jobmeter(words[0], *words[1:])
        assert printed.code in (0, 1), (words, printed)
        assert_harmless(printed, words)
        # As text, not as markup.
        assert "[red]y[b]" in printed.out or words[0] in ("gc", "compare"), (words, printed)


@pytest.mark.no_records
def test_csv_in_a_pipe_is_the_data_as_it_is(jobmeter: Commands) -> None:
    make_store(jobmeter.folder)
    for words in DATA:
        assert "x\x1b]0;t\x07" in jobmeter(words[0], *words[1:]).out, words


@pytest.mark.no_records
def test_json_gives_the_text_as_it_was(jobmeter: Commands) -> None:
    make_store(jobmeter.folder)
    names = {run["name"] for run in json.loads(jobmeter("ls", "--json").out)}
    assert {HOSTILE.replace("\udc9b", "�9b")} == names


@pytest.mark.no_records
@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(words[:2]).replace(VISIBLE, "HOSTILE"))
def test_an_error_that_quotes_its_input_is_harmless(jobmeter: Commands, words: list[str]) -> None:
    make_store(jobmeter.folder)
    printed = jobmeter(words[0], *words[1:])
    assert printed.code in (2, 125), printed
    assert_harmless(printed, words)
    own = [line for line in printed.err.splitlines() if not line.startswith("jobmeter: ") and not line.startswith("  ")]
    assert [] == own, printed.err


class OnTerminal:
    """Runs commands in a directory of such a name, below a terminal of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / VISIBLE
        self.folder.mkdir()
        self.store = self.folder / "store"

    def __call__(self, *words: str) -> str:
        env = {**environment(), "JOBMETER_STORE": str(self.store)}
        return Terminal([sys.executable, "-m", "jobmeter", *words], env, cwd=self.folder, columns=120).finish().text


def assert_only_styles(shown: str, words: Sequence[str]) -> None:
    rest = _STYLES.sub("", shown).replace("\r\n", "").replace("\r", "")
    assert rest.isprintable(), (words, rest)
    assert "Traceback" not in shown, shown


@pytest.mark.no_records
def test_on_a_terminal_only_our_own_styles_control_it(tmp_path: Path) -> None:
    terminal = OnTerminal(tmp_path)
    make_store(terminal.store)
    for words in (
        ["ls"], ["show", "aaa1"], ["check", "aaa1"], ["stats"], ["compare", "aaa1", "bbb2"], ["label", "aaa1"],
        ["ls", "--csv"], ["export"], ["export", "-o", f"{VISIBLE}.csv"], ["show", VISIBLE + "2"], [VISIBLE],
    ):  # fmt: skip
        assert_only_styles(terminal(*words), words)


def spec_of(folder: Path) -> str:
    path = folder / f"{VISIBLE}.json"
    job = "a\u202e\u2066[red]y[b]"
    jobs = [
        {"name": job, "command": f"printf '{VISIBLE.encode('unicode_escape').decode()}' >&2; sleep 0.5; exit 3"},
        {"name": "next", "command": "true", "blocked_by": [job]},
    ]
    spec = {"name": VISIBLE.replace("\udc9b", ""), "description": HOSTILE.replace("\udc9b", ""), "jobs": jobs}
    path.write_text(json.dumps(spec))
    return path.name


def test_a_workflow_of_such_texts_is_harmless_from_its_run_to_its_graph(tmp_path: Path) -> None:
    terminal = OnTerminal(tmp_path)
    spec = spec_of(terminal.folder)
    assert "a\\u202e" in terminal("workflow", "run", spec)
    for words in (
        ["run", spec], ["run", "--dry-run", spec], ["status"], ["results"], ["list"], ["graph"], ["graph", spec],
        ["resume"], ["resume", "--dry-run"], ["graph", "--html", f"{VISIBLE}.html"], ["status", VISIBLE],
        ["status", "--json"], ["run", VISIBLE], [VISIBLE],
    ):  # fmt: skip
        assert_only_styles(terminal("workflow", *words), words)
    page = (terminal.folder / f"{VISIBLE}.html").read_text()
    assert "<red>" not in page


def test_a_run_of_such_a_command_is_harmless(tmp_path: Path) -> None:
    terminal = OnTerminal(tmp_path)
    name = f"-{VISIBLE}"
    for words in (
        ["run", f"--name={name}", f"--label=k={VISIBLE}", "--", "true", VISIBLE],
        ["run", "--report", f"{VISIBLE}/x", "--", "true"],
        ["run", "--", VISIBLE], ["run", "--cpus", VISIBLE, "true"], ["run", f"--{VISIBLE}", "true"],
        ["run", "--measurements", VISIBLE, "true"],
        ["run", "--quiet", "--store", f"/proc/{VISIBLE}", "--", "true"],
        ["show"], ["plot"], ["plot", "--json"], ["import", f"/proc/{VISIBLE}"], ["attach", VISIBLE],
        ["rm", "--yes", name], ["gc", "--older-than", "1ms"],
    ):  # fmt: skip
        assert_only_styles(terminal(*words), words)


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize(
    "words",
    [
        ["show", "nothing-of-this-name"], ["ls", "--sort", "memory"], ["run", "--intervall", "2", "true"],
        ["run", "--store", "/proc/none", "--quiet", "--", "true"], ["ls"], ["rm", "--dry-run", "aaa1", "bbb2"], [],
    ],
    ids=lambda words: " ".join(words[:2]) or "usage",
)  # fmt: skip
def test_messages_are_broken_between_words_on_a_terminal_alone(tmp_path: Path, words: list[str], columns: int) -> None:
    kept(tmp_path, record("aaa1", "train"), record("bbb2", "train"))
    with open(tmp_path / "journal" / "aaa1.jsonl", "a") as journal:
        journal.write("{torn\n")
    (tmp_path / "index.db").unlink()
    settings = {**environment(), "PYTHONPATH": f"{ROOT}/src", "HOME": str(tmp_path), "JOBMETER_STORE": str(tmp_path)}
    command = [sys.executable, "-m", "jobmeter", *words]
    piped = subprocess.run(command, env=settings, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False).stderr
    (tmp_path / "index.db").unlink(missing_ok=True)
    shown = _STYLES.sub("", Terminal(command, settings, cwd=tmp_path, columns=columns).finish().text)
    assert " ".join(piped.split()) in " ".join(shown.split())
    long_words = {word for word in piped.split() if len(word) + 4 > columns}
    for line in shown.splitlines():
        assert len(line) <= columns or long_words & set(line.split()), line
