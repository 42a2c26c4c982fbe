from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.errors import UsageError
from jobmeter.workflow.inputs import check_inputs
from tests.workflow.spec.writing import plan_of

SPEC = """
jobs:
  - {name: first, command: ./a, inputs: [raw.csv], outputs: [clean.csv]}
  - {name: second, command: ./b, inputs: [clean.csv]}
"""


def test_a_file_that_nobody_makes_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        check_inputs(plan_of(tmp_path, SPEC))
    assert f"job 'first' needs {tmp_path}/raw.csv, which is not there" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_a_job_makes_need_not_be_there_yet(tmp_path: Path) -> None:
    (tmp_path / "raw.csv").touch()
    check_inputs(plan_of(tmp_path, SPEC))


def test_a_directory_to_run_in_must_be_there_unless_a_job_makes_it(tmp_path: Path) -> None:
    spec = "jobs: [{name: first, command: ./a, outputs: [made/x]}, {name: second, command: ./b, cwd: %s}]"
    check_inputs(plan_of(tmp_path, spec % "made"))
    with pytest.raises(UsageError, match=f"job 'second' is to run in {tmp_path}/other, which is no directory"):
        check_inputs(plan_of(tmp_path, spec % "other"))
