"""A headline figure is one row: a row added from outside is seen by every command, on a real run."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.parts import need_module
from tests.running import environment

# In a process of its own: modules read the table when they are imported.
WITH_ROW = """
import sys
from jobmeter.analyse import headline_table as table
table.HEADLINE += (
    table.HeadlineFigure("threads_peak", "count", "threads", ("proc_threads_total",), "peak",
                         summary=table.SummaryPart("threads", "{} at most"), in_ls=True, in_stats=True),
    table.HeadlineFigure("members_peak", "count", "members", ("proc_processes",), "peak"),  # measured by default
)
from jobmeter.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
JOB = "import threading, time; [threading.Thread(target=time.sleep, args=(1,)).start() for _ in range(3)]"


MEASURED = ("--measurements", "default,proc_threads_total", "--interval", "0.1", "--", sys.executable, "-S", "-c", JOB)


class Commands:
    """jobmeter with one row more, and what it prints."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: str, program: str = WITH_ROW) -> subprocess.CompletedProcess[str]:
        settings = {**environment(), "JOBMETER_STORE": str(self.folder / "store"), "COLUMNS": "200"}
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, env=settings, cwd=self.folder, capture_output=True, text=True, check=True)

    def __call__(self, *arguments: str) -> str:
        return self.run(*arguments).stdout

    def without_row(self, *arguments: str) -> str:
        return self.run(*arguments, program="import sys; from jobmeter.cli.main import main; main(sys.argv[1:])").stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture(scope="module")
def jobmeter(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """A store with a run of four threads, and one that was measured before the row was there."""
    commands = Commands(tmp_path_factory.mktemp("row"))
    commands.without_row("run", "--quiet", "--name", "before", "--", "true")
    assert "threads_peak" not in commands.without_row("ls")
    done = commands.run("run", "--name", "threads", *MEASURED)
    assert "  threads    4 at most [sampled, proc]" in done.stderr.splitlines()
    return commands


def test_ls_shows_it_finds_by_it_and_sorts_by_it(jobmeter: Commands) -> None:
    assert "threads_peak" in jobmeter("ls").splitlines()[0].split()
    rows = jobmeter.json("ls", "--where", "threads_peak > 3", "--fields", "name,threads_peak")
    assert [{"name": "threads", "threads_peak": 4}] == rows
    assert ["threads", "before"] == [row["name"] for row in jobmeter.json("ls", "--sort", "threads_peak")]


def test_show_has_it(jobmeter: Commands) -> None:
    figure = jobmeter.json("show", "threads")["usage"]["threads_peak"]
    assert {"value": 4, "from": "proc_threads_total", "quality": "sampled"} == figure
    lines = [line.split() for line in jobmeter("show", "threads").splitlines()]
    assert ["threads_peak", "4", "sampled", "proc_threads_total"] in lines


def test_stats_have_it(jobmeter: Commands) -> None:
    groups = {group["name"]: group for group in jobmeter.json("stats")["groups"]}
    assert {"p50": 4, "p95": 4, "max": 4} == groups["threads"]["threads_peak"]
    assert "threads_peak" not in groups["before"]
    filtered = jobmeter.json("stats", "--where", "wall_seconds >= 0")["groups"]
    assert sorted(groups) == sorted(group["name"] for group in filtered)
    assert "threads_peak_max" in jobmeter("stats").splitlines()[0].split()
    (row, _) = csv.DictReader(io.StringIO(jobmeter("stats", "--csv")))
    assert "threads_peak_p95" in row


def test_compare_has_it(jobmeter: Commands) -> None:
    jobmeter.run("run", "--quiet", "--name", "again", *MEASURED)
    (measure,) = [each for each in jobmeter.json("compare", "threads", "again")["measures"]
                  if each["key"] == "threads_peak"]  # fmt: skip
    assert (4, 4, "threads_peak: the same") == (measure["a"], measure["b"], measure["words"])


def test_exports_have_it_as_a_whole_number(jobmeter: Commands) -> None:
    (row,) = csv.DictReader(io.StringIO(jobmeter("export", "threads")))
    assert "4" == row["threads_peak"]
    assert 4 == json.loads(jobmeter("export", "threads", "--format", "jsonl"))["threads_peak"]
    parquet = need_module("pyarrow.parquet")
    jobmeter("export", "-o", "runs.parquet")
    schema = parquet.read_table(jobmeter.folder / "runs.parquet").schema
    assert "int64" == str(schema.field("threads_peak").type)


def test_results_of_a_workflow_have_it(jobmeter: Commands) -> None:
    word = json.dumps([sys.executable, "-S", "-c", JOB])
    (jobmeter.folder / "spec.yaml").write_text(f"name: rows\njobs: [{{name: one, command: {word}}}]\n")
    jobmeter("workflow", "run", "spec.yaml", "--quiet")
    (result,) = jobmeter.json("workflow", "results", "rows")["results"]
    assert 1 == result["members_peak"]
    assert "threads_peak" not in result  # not measured


def test_the_page_of_plots_has_it(jobmeter: Commands) -> None:
    jobmeter("plot", "threads", "-o", "pages")
    (page,) = (jobmeter.folder / "pages").glob("*.html")
    assert "<dt>threads</dt>" in page.read_text()


def test_an_index_with_the_column_serves_a_jobmeter_without_it(jobmeter: Commands) -> None:
    """And the other way round: each finds that the columns differ, and makes the index anew."""
    for _ in range(2):
        assert "threads_peak" in jobmeter("ls")
        listed = jobmeter.without_row("ls")
        assert ("threads_peak" in listed, "threads " in listed) == (False, True)
