"""The recipes of docs/architecture.md, followed on a copy of the source: what they say is all that is needed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.packages import install
from tests.running import ROOT, environment
from tests.waiting import LONG

PAGE = Path(ROOT, "docs", "architecture.md").read_text()
STEP = re.compile(r"<!-- recipe: (\w+); (.*?) -->\n```py\n(.*?)```$", re.DOTALL | re.MULTILINE)
WHERE = re.compile(r"(before|after|in place of) `(.*)` in (\S+)")

Jobmeter = Callable[..., str]


def follow(recipe: str, source: Path) -> list[Path]:
    """Do what the page says, and return the files that were touched."""
    touched = []
    for name, instruction, block in STEP.findall(PAGE):
        if name != recipe:
            continue
        if instruction.startswith("file "):
            path = source / "jobmeter" / instruction.removeprefix("file ")
            assert not path.exists(), path
            path.write_text(block)
        else:
            how, anchor, file = WHERE.fullmatch(instruction).groups()  # type: ignore[union-attr]
            path = source / "jobmeter" / file
            text = path.read_text()
            assert text.count(anchor) == 1, f"{anchor!r} is {text.count(anchor)} times in {file}"
            block = block.removesuffix("\n") if how != "before" else block
            changed = {"before": block + anchor, "after": anchor + block, "in place of": block}[how]
            path.write_text(text.replace(anchor, changed))
        touched.append(path)
    assert touched, f"there is no recipe {recipe!r}"
    return touched


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return Path(shutil.copytree(f"{ROOT}/src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def jobmeter(source: Path, tmp_path: Path) -> Jobmeter:
    settings = {**environment(), "PYTHONPATH": str(source), "JOBMETER_STORE": str(tmp_path / "store")}

    def call(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "jobmeter", *arguments],
            env=settings, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LONG,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_every_recipe_of_the_page_is_followed_here() -> None:
    followed = set(re.findall(r'follow\("(\w+)"', Path(__file__).read_text()))
    assert followed == {name for name, _, _ in STEP.findall(PAGE)}


def test_the_table_of_files_touched_has_every_recipe_and_each_row_is_shown_by_something() -> None:
    text = Path(ROOT, "docs", "design.md").read_text()
    table = text[text.index("## Files touched to add something") :]
    rows = re.findall(r"^\| (an? .*?) \|.*\| (.*) \|$", table[: table.index("\n## ", 1)], re.MULTILINE)
    shown = {thing: set(re.findall(r"architecture\.md#([\w-]+)", where)) for thing, where in rows}
    headings = {f"add-{thing.replace(' ', '-')}": thing for thing in shown}
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    followed = {_anchor(section): section for section in sections if "<!-- recipe: " in section}
    assert set(followed) == set().union(*shown.values())
    assert [] == [thing for anchor, thing in headings.items() if anchor in followed and shown[thing] != {anchor}]
    for thing, where in rows:
        files = re.findall(r"`(tests/[\w/]+\.py)`", where)
        assert shown[thing] or files, thing
        assert [] == [file for file in files if not Path(ROOT, file).exists()]


def _anchor(section: str) -> str:
    """The anchor of a section, which begins with its heading."""
    return section.splitlines()[0].lower().replace(" ", "-")


def test_a_measurement_is_one_file(source: Path, jobmeter: Jobmeter) -> None:
    assert 1 == len(set(follow("measurement", source)))
    jobmeter("run", "--measurements", "host_tasks", "--report", "record.json", "--quiet", "--", "sleep", "0.1")
    record = json.loads((source.parent / "record.json").read_text())
    assert record["measurements"]["host_tasks"]["peak"] >= 1
    assert "Processes and threads of the machine" in jobmeter("measurements", "host_tasks")


def test_a_collector_is_one_file_and_one_line(source: Path, jobmeter: Jobmeter) -> None:
    assert 2 == len(set(follow("collector", source)))
    jobmeter("run", "--measurements", "entropy_bits", "--report", "record.json", "--quiet", "--", "sleep", "0.1")
    record = json.loads((source.parent / "record.json").read_text())
    assert record["measurements"]["entropy_bits"]["peak"] > 0


def test_a_command_is_one_file_and_one_line(source: Path, jobmeter: Jobmeter) -> None:
    assert 2 == len(set(follow("command", source)))
    for _ in range(2):
        jobmeter("run", "--quiet", "--", "true")
    assert "2\n" == jobmeter("count", "--name", "true")
    assert "count " in jobmeter("--help")


def test_an_import_format_is_one_file_and_one_word(source: Path, jobmeter: Jobmeter) -> None:
    assert 2 == len(set(follow("import", source)))
    (source.parent / "log").write_text("stopwatch boil 12.5\nstopwatch steep 3\n")
    assert "the log of a stopwatch: 2 new" in jobmeter("import", "log")
    rows = json.loads(jobmeter("ls", "--fields", "wall_seconds", "--json"))
    assert [3.0, 12.5] == sorted(row["wall_seconds"] for row in rows)


def test_an_export_format_is_one_file(source: Path, jobmeter: Jobmeter) -> None:
    assert 1 == len(set(follow("export", source)))
    jobmeter("run", "--quiet", "--name", "a\tb", "--", "true")
    header, row = jobmeter("export", "--format", "tsv").splitlines()
    assert "a b" == dict(zip(header.split("\t"), row.split("\t")))["name"]
    jobmeter("export", "-o", str(source / "runs.tsv"))
    assert (source / "runs.tsv").read_text().splitlines() == [header, row]


def test_a_size_format_is_one_file(source: Path, jobmeter: Jobmeter) -> None:
    assert 1 == len(set(follow("size", source)))
    jobmeter("run", "--quiet", "--name", "nap", "--memory", "1g", "--", "sleep", "0.1")
    assert "#PBS -l mem=" in jobmeter("size", "nap", "--format", "pbs")


TURNS = """
name: turns
jobs:
  - {name: "turn_{i}", command: "mkdir busy && sleep 0.05 && rmdir busy && echo turn >>log", parameters: {i: "1:4"}}
  - {name: last, command: "echo last >>log", depends_on: "turn_*"}
"""
"""Jobs that fail if another one runs beside them."""


def test_an_engine_is_one_file_and_one_line(source: Path, jobmeter: Jobmeter) -> None:
    assert 2 == len(set(follow("engine", source)))
    run_on_the_serial_engine(jobmeter, source.parent)


def test_the_same_engine_works_in_a_package_of_its_own(source: Path, jobmeter: Jobmeter) -> None:
    (code,) = (block for name, step, block in STEP.findall(PAGE) if name == "engine" and step.startswith("file "))
    install(source, "jobs-in-turn", code, serial="SerialEngine")
    run_on_the_serial_engine(jobmeter, source.parent)


def run_on_the_serial_engine(jobmeter: Jobmeter, folder: Path) -> None:
    (folder / "spec.yaml").write_text(TURNS)
    jobmeter("workflow", "run", "spec.yaml", "--engine", "serial", "--cpus", "4", "--quiet")
    assert ["turn"] * 4 + ["last"] == (folder / "log").read_text().split()
    results = json.loads(jobmeter("workflow", "results", "--json"))["results"]
    assert ["completed"] * 5 == [result["status"] for result in results]
