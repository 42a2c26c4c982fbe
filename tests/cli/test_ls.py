from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobmeter.analyse.headline_table import HEADLINE
from tests.cli.listing import Commands
from tests.runs import record
from tests.store.kept import five, kept
from tests.terminal import Terminal


def test_runs_are_listed_newest_first_with_units(jobmeter: Commands) -> None:
    done = jobmeter.keep()("ls")
    assert "id    name       status         wall  memory_peak     cpu  started" == done.out.splitlines()[0]
    assert ["ddd5", "ccc4", "bbb3", "aab2", "aaa1"] == [line.split()[0] for line in done.out.splitlines()[1:]]
    assert "aaa1  train      completed      10 s        5 GiB  9.50 s  2026-01-31 12:00:00" in done.out
    assert (0, "") == (done.code, done.err)


def test_json_has_numbers_as_numbers_and_nothing_for_what_was_not_measured(jobmeter: Commands) -> None:
    rows = json.loads(jobmeter.keep()("ls", "--json").out)
    assert [5 << 30, 9.5, 0, {"team": "a"}] == [
        rows[-1][field] for field in ("memory_peak_bytes", "cpu_seconds", "exit_code", "labels")
    ]
    assert {"cpu_seconds", "memory_peak_bytes", "signal", "ended"} & rows[0].keys() == set()
    assert [] == json.loads(jobmeter("ls", "--json", "nothing").out)


def test_fields_are_chosen_labels_among_them(jobmeter: Commands) -> None:
    jobmeter.keep()
    assert [
        "name       labels.team  command",
        "export                  true",
        "test-long  a            true",
    ] == jobmeter("ls", "--fields", "name,labels.team,command", "--limit", "2").out.splitlines()
    rows = json.loads(jobmeter("ls", "--json", "--fields", "id,labels.team,cpu_seconds", "train").out)
    assert [{"id": "aab2", "labels.team": "b"}, {"id": "aaa1", "labels.team": "a", "cpu_seconds": 9.5}] == rows


def test_csv_has_a_heading_and_bare_numbers(jobmeter: Commands) -> None:
    rows = list(csv.DictReader(io.StringIO(jobmeter.keep()("ls", "--csv").out)))
    assert ("5368709120", "9.5", '{"team": "a"}', '["true"]') == tuple(
        rows[-1][field] for field in ("memory_peak_bytes", "cpu_seconds", "labels", "command")
    )
    assert "" == rows[0]["cpu_seconds"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train"], ["aab2", "aaa1"]),
        (["t*st*", "--status", "failed"], ["bbb3"]),
        (["--label", "team=a"], ["ccc4", "aaa1"]),
        (["--where", 'memory_peak_bytes > 4GiB and status = "oom"'], ["aab2"]),
        (["--since", "2026-01-31T14:30", "--until", "2026-01-31T15:30Z"], ["ccc4"]),
        (["--since", "2h"], []),
        (["--sort", "wall_seconds", "--limit", "1"], ["ccc4"]),
        (["--sort", "wall_seconds", "--reverse", "--limit", "1"], ["ddd5"]),
        (["--sort", "name", "--limit", "2"], ["ddd5", "bbb3"]),
        (["--limit", "0"], ["ddd5", "ccc4", "bbb3", "aab2", "aaa1"]),
    ],
)
def test_filters_and_order(jobmeter: Commands, arguments: list[str], expected: list[str]) -> None:
    rows = json.loads(jobmeter.keep()("ls", "--json", *arguments).out)
    assert expected == [row["id"] for row in rows]


def test_more_runs_than_a_table_shows_are_reported(jobmeter: Commands) -> None:
    done = jobmeter.keep()("ls", "--limit", "2")
    assert (3, "jobmeter: there are more runs than these 2; --limit 0 shows all\n") == (
        len(done.out.splitlines()),
        done.err,
    )


def test_a_figure_that_may_be_higher_says_so(jobmeter: Commands) -> None:
    run = record("aaa1", cpu_seconds=2.0, memory_peak_bytes=1 << 30)
    run["usage"]["memory_peak_bytes"]["quality"] = "at least"
    assert "    ≥ 1 GiB  2 s" in jobmeter.keep(run)("ls").out


def test_every_figure_that_may_be_higher_says_so(jobmeter: Commands) -> None:
    figures: dict[str, Any] = {figure.name: 1.0 for figure in HEADLINE}
    run = record("aaa1", **figures)
    for figure in run["usage"].values():
        figure["quality"] = "at least"
    cells = jobmeter.keep(run)("ls", "--fields", ",".join(run["usage"])).out.splitlines()[1]
    assert len(HEADLINE) == cells.count("≥")


def test_a_name_that_would_move_the_cursor_is_shown_harmless(jobmeter: Commands) -> None:
    assert r"a\x1b[31mb\nc" in jobmeter.keep(record("aaa1", "a\x1b[31mb\nc"))("ls").out


def test_an_empty_store_is_reported(jobmeter: Commands) -> None:
    assert (0, "", "jobmeter: no runs found\n") == jobmeter("ls")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fields", "id,memory"], "--fields: there is no field 'memory'. Did you mean"),
        (["--sort", "memory"], "--sort: there is no field 'memory'. Did you mean 'memory_peak'?"),
        (["--limit", "-1"], "--limit: '-1' is not a whole number from 0 up"),
        (["--limit", "²"], "--limit: '²' is not a whole number from 0 up"),
        (["--limit", "1" + "0" * 23], "--limit: '1" + "0" * 23 + "' is not a whole number from 0 up"),
        (["--limit", "9" * 5000], "…' is not a whole number from 0 up"),
        (["--since", "soon"], "--since: 'soon' is not a time"),
        (["--status", "dead"], "--status: 'dead' is not one of"),
        (["--label", "team"], "--label: 'team' is not KEY=VALUE"),
        (["--json", "--csv"], "not allowed with"),
    ],
)
def test_arguments_that_cannot_be_used_are_reported_in_one_line(
    jobmeter: Commands, arguments: list[str], message: str
) -> None:
    done = jobmeter.keep()("ls", *arguments)
    assert (2, "") == (done.code, done.out)
    assert message in done.err
    assert 1 == len(done.err.splitlines())


def test_a_bad_expression_points_at_the_place(jobmeter: Commands) -> None:
    done = jobmeter.keep()("ls", "--where", "status = oom and cup > 5")
    assert [2, "  status = oom and cup > 5", "                   ^"] == [done.code, *done.err.splitlines()[1:]]


def test_a_store_that_is_a_file_is_reported(jobmeter: Commands) -> None:
    jobmeter.folder.write_text("")
    done = jobmeter("ls")
    assert (125, f"jobmeter: {jobmeter.folder}: not a directory. Name a store with --store or JOBMETER_STORE.\n") == (
        done.code,
        done.err,
    )


def test_a_store_that_may_not_be_read_is_reported(jobmeter: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    jobmeter.keep()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    done = jobmeter("ls")
    assert (125, "", True) == (done.code, done.out, "Permission denied. Name another store" in done.err)


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = f'set -o pipefail; jobmeter() {{ {sys.executable} -m jobmeter "$@"; }}; {line}'
    settings = {**os.environ, "JOBMETER_STORE": str(folder), "PYTHONPATH": "src"}
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=settings)


@pytest.mark.parametrize("form", ["", "--json", "--csv"])
def test_a_reader_that_has_enough_is_no_error(tmp_path: Path, form: str) -> None:
    runs = [record(f"run{number}", "n" * 200) for number in range(2000)]
    from jobmeter.store import open_store

    open_store(str(tmp_path), print).add_all((run, (), None) for run in runs)
    done = shell(f"jobmeter ls --limit 0 {form} | head -1", tmp_path)
    assert (1, "") == (len(done.stdout.splitlines()), done.stderr)


def test_on_a_terminal_the_table_fits_it(tmp_path: Path) -> None:
    kept(tmp_path, *five(), record("eee6", "n" * 300))
    settings = {**os.environ, "JOBMETER_STORE": str(tmp_path), "PYTHONPATH": "src"}
    code, shown = Terminal([sys.executable, "-m", "jobmeter", "ls"], settings, columns=100).finish()
    assert 0 == code
    assert "completed" in shown
    assert "nnn…" in shown


def test_headings_are_names_of_fields_with_or_without_their_unit(jobmeter: Commands) -> None:
    jobmeter.keep()
    short = jobmeter("ls", "--fields", "id,memory_peak,wall", "--sort", "memory_peak", "--where", "memory_peak > 1k")
    full = jobmeter(
        "ls", "--fields", "id,memory_peak_bytes,wall_seconds", "--sort", "memory_peak_bytes",
        "--where", "memory_peak_bytes > 1k",
    )  # fmt: skip
    assert (0, full.out) == (short.code, short.out)
    heading = short.out.splitlines()[0].split()
    assert ["id", "memory_peak", "wall"] == heading
    for name in heading:
        assert 0 == jobmeter("ls", "--sort", name, "--fields", name).code
    (row, *_) = json.loads(jobmeter("ls", "--fields", "memory_peak", "--sort", "memory_peak", "--json").out)
    assert ["memory_peak_bytes"] == list(row)


def test_every_heading_of_all_fields_is_accepted(jobmeter: Commands) -> None:
    headings = jobmeter.keep()("ls", "--fields", "all").out.splitlines()[0].split()
    again = jobmeter("ls", "--fields", ",".join(headings))
    assert headings == again.out.splitlines()[0].split()


def test_the_source_is_a_field_to_show_and_filter_by(jobmeter: Commands) -> None:
    theirs = record("bbb1", wall_seconds=1.0)
    theirs["provenance"] = {"imported": {"from": "slurm", "where": "sacct.txt: line 2"}}
    jobmeter.keep(record("aaa1", wall_seconds=2.0), theirs)
    rows = json.loads(jobmeter("ls", "--json", "--fields", "id,source", "--sort", "id").out)
    assert [{"id": "aaa1", "source": "jobmeter"}, {"id": "bbb1", "source": "slurm"}] == rows
    for source, run in (("slurm", "bbb1"), ("jobmeter", "aaa1")):
        listed = json.loads(jobmeter("ls", "--json", "--where", f'source = "{source}"').out)
        assert [run] == [row["id"] for row in listed]
