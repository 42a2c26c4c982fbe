from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobmeter.cli.main import main
from tests.workflow.spec.writing import write

GOOD = "jobs:\n- {name: a, command: x}\n"
BAD = "jobs:\n- {name: a, command: x, priority: high}\n- {name: b, command: x, depends_on: [c]}\n"


def test_all_problems_of_all_specs_are_printed_as_compilers_do(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good, bad = write(tmp_path, GOOD, "good.yaml"), write(tmp_path, BAD, "bad.yaml")

    assert 1 == main(["workflow", "validate", good, bad])
    assert [
        f"{good}: 1 job, nothing is wrong",
        f"{bad}:2:25: jobs[0].priority: 'high' is not a whole number",
        f"{bad}:3:25: jobs[1].depends_on: there is no job 'c'. There are: a, b.",
    ] == capfd.readouterr().out.splitlines()


def test_json_has_line_column_and_field_of_each(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bad = write(tmp_path, BAD, "bad.yaml")

    assert 1 == main(["workflow", "validate", "--json", bad])
    (result,) = json.loads(capfd.readouterr().out)
    assert {"line": 2, "column": 25, "field": "jobs[0].priority", "message": "'high' is not a whole number"} == result[
        "problems"
    ][0]


def test_an_input_that_is_missing_is_a_problem_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "files:\n- {name: raw, path: raw.csv}\njobs:\n- {name: a, command: 'cat ${files.input.raw}'}\n"
    spec = write(tmp_path, text)

    assert 1 == main(["workflow", "validate", spec])
    assert (
        f"{spec}: job 'a' needs {tmp_path}/raw.csv, which is not there, and no job has it as an output\n"
        == capfd.readouterr().out
    )
    (tmp_path / "raw.csv").touch()
    assert 0 == main(["workflow", "validate", spec])


def test_fields_without_effect_are_named_and_are_no_problem(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spec = write(tmp_path, "use_pending_failed: true\nslurm_defaults: {qos: high}\n" + GOOD)

    assert 0 == main(["workflow", "validate", spec])
    assert (
        f"jobmeter: {spec}: without effect on this machine: use_pending_failed, slurm_defaults\n"
        == capfd.readouterr().err
    )


def test_what_a_run_would_warn_of_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    requirement = "resource_requirements: [{name: wide, num_nodes: 2, custom: {license: 1}}]\n"
    spec = write(tmp_path, f"name: w\n{requirement}jobs: [{{name: a, command: 'true', resource_requirements: wide}}]\n")

    assert 0 == main(["workflow", "validate", "--json", spec])
    (result,) = json.loads(capfd.readouterr().out)
    assert ["num_nodes", "license"] == result["without_effect"]
    assert 0 == main(["workflow", "run", "--store", str(tmp_path / "store"), spec])
    warnings = [line for line in capfd.readouterr().err.splitlines() if "not used" in line]
    assert 2 == len(warnings)
    assert all(name in line for name, line in zip(result["without_effect"], warnings))


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 1 == main(["workflow", "validate", str(tmp_path / "none.yaml")])
    assert f"{tmp_path}/none.yaml: No such file or directory\n" == capfd.readouterr().out


def test_run_refuses_with_all_problems_and_starts_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bad = write(tmp_path, BAD, "bad.yaml")

    assert 2 == main(["workflow", "run", "--store", str(tmp_path / "store"), bad])
    assert [
        f"jobmeter: {bad}:2:25: jobs[0].priority: 'high' is not a whole number",
        f"{bad}:3:25: jobs[1].depends_on: there is no job 'c'. There are: a, b.",
    ] == capfd.readouterr().err.splitlines()
    assert not (tmp_path / "store").exists()
