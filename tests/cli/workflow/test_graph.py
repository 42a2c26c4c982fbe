from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobmeter.api.jobs import run_workflow
from jobmeter.cli.main import main

SPEC = """
name: Demo
jobs:
- {name: prep, command: "true", resource_requirements: {cpus: 1, memory: 1g, runtime: 10m}}
- {name: "train_{i:03d}", command: "./train {i}", parameters: {i: "1:100"}, blocked_by: [prep]}
- {name: report, command: ./report, blocked_by: ["train_{i:03d}"]}
"""
SMALL = 'name: Small\njobs:\n- {name: good, command: "true"}\n- {name: bad, command: "false"}\n'


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "demo.yaml"
    path.write_text(SPEC)
    return str(path)


@pytest.fixture
def store(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """A store with a run of a workflow of which one job failed."""
    path, store = tmp_path / "small.yaml", str(tmp_path / "store")
    path.write_text(SMALL)
    assert not run_workflow(path, store=store).succeeded
    capfd.readouterr()
    return store


def test_the_graph_is_text_with_sweeps_as_one(spec: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["workflow", "graph", spec])
    printed = capfd.readouterr().out
    assert printed.startswith("Demo: 102 jobs, 200 dependencies\n")
    assert "train_{i:03d} × 100" in printed


def test_json_has_every_job_and_every_dependency(spec: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["workflow", "graph", spec, "--json"])
    graph = json.loads(capfd.readouterr().out)
    assert 102 == len(graph["nodes"])
    assert 200 == len(graph["edges"])
    assert {"from": 1, "to": 2} == graph["edges"][0]
    prep = {"cpus": 1, "memory_bytes": 2**30, "runtime_seconds": 600}
    assert {"job_id": 1, "name": "prep", "step": "prep", "command": "true", "requirement": prep} == graph["nodes"][0]


def test_the_page_is_written_and_its_path_printed(spec: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "graph.html")
    assert 0 == main(["workflow", "graph", spec, "--html", path])
    assert f"{path}\n" == capfd.readouterr().out
    page = Path(path).read_text()
    assert "train_{i:03d} × 100" in page
    assert "1 cpu, 1 GiB, 10m" in page
    assert "for example train_001:\n./train 1" in page


def test_a_kept_run_is_drawn_with_how_its_jobs_fared(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "graph.html")
    assert 0 == main(["workflow", "graph", "small", "--store", store, "--html", path, "--json"])
    graph = json.loads(capfd.readouterr().out)
    assert {"good": "completed", "bad": "failed"} == {node["name"]: node["status"] for node in graph["nodes"]}
    page = Path(path).read_text()
    assert "run 1 of small: failed" in page
    assert "</i>1 failed</span>" in page


def test_the_run_that_is_meant_can_be_named_by_its_spec(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["workflow", "graph", str(tmp_path / "small.yaml"), "--store", store, "--run-id", "1", "--json"]
    assert 0 == main(arguments)
    assert "status" in json.loads(capfd.readouterr().out)["nodes"][0]


def test_a_file_that_is_no_spec_does_not_hide_the_workflow_of_its_name(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").touch()
    assert 0 == main(["workflow", "graph", "small", "--store", store])
    assert capfd.readouterr().out.startswith("Small: 2 jobs")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["SPEC", "--html", "/nowhere/graph.html"], "--html: /nowhere/graph.html: No such file or directory"),
        (["SPEC", "--html", "/"], "--html: /: Is a directory"),
        (["missing.yaml"], "missing.yaml: No such file or directory"),
        (["nothing"], "there is no workflow 'nothing'"),
        ([], "no workflow was run yet"),
    ],
)
def test_bad_input_is_one_clear_line(
    spec: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    words_given = [spec if word == "SPEC" else word for word in arguments]
    assert 2 == main(["workflow", "graph", "--store", str(tmp_path / "empty"), *words_given])
    printed = capfd.readouterr()
    assert "" == printed.out
    assert words in printed.err
    assert 1 == printed.err.count("\n")


def test_nothing_in_a_kept_name_moves_the_cursor(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text('name: "a\\e[2Jb"\njobs:\n- {name: x, command: "true"}\n')
    assert 0 == main(["workflow", "graph", str(path)])
    assert "\x1b" not in capfd.readouterr().out


def test_the_text_shows_how_the_jobs_of_a_run_ended(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["workflow", "graph", "small", "--store", store])
    assert ["  good  completed", "  bad   failed"] == capfd.readouterr().out.splitlines()[-2:]


def test_the_jobs_of_a_sweep_are_counted_by_how_they_fared(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, store = tmp_path / "sweep.yaml", str(tmp_path / "store")
    sweep = '{name: "n_{i}", command: "test {i} != 2", parameters: {i: "1:4"}}'
    path.write_text(f"name: Sweep\njobs:\n- {sweep}\n- {{name: last, command: 'true', blocked_by: ['n_{{i}}']}}\n")
    assert not run_workflow(path, store=store).succeeded
    capfd.readouterr()
    assert 0 == main(["workflow", "graph", "sweep", "--store", store])
    printed = capfd.readouterr().out
    assert "\n  n_{i} × 4  3 completed, 1 failed\n" in printed or "\n  n_{i} × 4  1 failed, 3 completed\n" in printed
    assert "  last  blocked  ← n_{i} × 4" in printed


FILES = """
name: Files
files: [{name: raw, path: raw.csv}, {name: "part", path: "part_{i}.csv", parameters: {i: "1:1"}}]
user_data: [{name: best}]
jobs:
- {name: make, command: "x > ${files.output.part} ${user_data.output.best}", input_files: raw}
- {name: use, command: "x ${files.input.part} ${user_data.input.best}"}
"""


def test_files_stand_between_the_jobs_that_make_and_read_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "files.yaml"
    path.write_text(FILES)

    assert 0 == main(["workflow", "graph", str(path), "--files"])
    assert (
        "Files: 2 jobs, 1 dependency\n\nlevel 1\n  raw.csv\n\nlevel 2\n  make  ← raw.csv\n\n"
        "level 3\n  part_1.csv … user data best (2 files)  ← make\n\n"
        "level 4\n  use  ← part_1.csv … user data best (2 files)\n" == capfd.readouterr().out
    )
    assert 0 == main(["workflow", "graph", str(path), "--files", "--json", "--html", str(tmp_path / "g.html")])
    assert [
        {"path": f"{tmp_path}/part_1.csv", "made_by": 1, "read_by": [2]},
        {"path": f"{tmp_path}/raw.csv", "read_by": [1]},
    ] == json.loads(capfd.readouterr().out)["files"]
    assert "raw.csv" in (tmp_path / "g.html").read_text()


def test_files_of_a_stored_run_are_shown_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, store = tmp_path / "files.yaml", str(tmp_path / "store")
    path.write_text("files: [{name: f, path: f.txt}]\njobs:\n- {name: a, command: 'touch ${files.output.f}'}\n")
    assert run_workflow(path, store=store).succeeded
    capfd.readouterr()
    assert 0 == main(["workflow", "graph", "--files", "--store", store])
    assert "level 2\n  f.txt  " in capfd.readouterr().out
