"""Specs as people have them already, run in every format as a newcomer would: `jobmeter workflow run FILE`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jobmeter.workflow.plan import load_plan
from tests.workflow.live import Place

SPECS = Path(__file__).parent / "newcomer"
REPORTS = {
    "diamond": ["3", "2"],
    "sweep": ["0.01 001", "0.01 002", "0.01 003", "0.1 001", "0.1 002", "0.1 003"],
    "recovery": ["repaired"],
    "actions": ["1", "2", "3", "start"],
    "handover": ['{"greeting": "hello", "times": 2}"hello back"'],
}


@pytest.mark.parametrize("kind", ["yaml", "json", "json5", "toml", "kdl"])
@pytest.mark.parametrize("name", list(REPORTS))
def test_a_spec_runs_as_it_is(place: Place, name: str, kind: str) -> None:
    shutil.copy(SPECS / f"{name}.{kind}", place.folder)

    done = place.call("run", f"{name}.{kind}")

    assert 0 == done.returncode, done.stderr
    assert REPORTS[name] == place.lines("report.txt")


@pytest.mark.parametrize("name", list(REPORTS))
def test_every_format_has_the_same_plan(name: str) -> None:
    plans = [load_plan(str(path))._replace(path="") for path in sorted(SPECS.glob(f"{name}.*"))]
    assert 5 == len(plans)
    assert all(plan == plans[0] for plan in plans)
