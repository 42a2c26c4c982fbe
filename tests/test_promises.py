"""CONTRIBUTING.md lists what is promised with the test that holds it: each of these tests exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.running import ROOT

_HEADING = "## Promises and their tests"
_TEST = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")


def promises() -> dict[str, list[tuple[str, str]]]:
    """Promise → file and function of each of its tests; no function stands for all of the file."""
    section = Path(ROOT, "CONTRIBUTING.md").read_text().partition(_HEADING)[2].partition("\n## ")[0]
    rows = [
        line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ") and "**" not in line
    ]
    return {row[0]: _TEST.findall(row[-1]) for row in rows[1:]}


def test_there_are_promises() -> None:
    assert len(promises()) > 30


@pytest.mark.parametrize(("promise", "tests"), promises().items())
def test_every_promise_has_a_test_that_exists(promise: str, tests: list[tuple[str, str]]) -> None:
    assert tests, promise
    for file, function in tests:
        text = Path(ROOT, "tests", file).read_text()
        assert re.search(rf"^def {function or 'test_'}", text, re.MULTILINE), f"{file}: {function}"
