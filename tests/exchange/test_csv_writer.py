"""Cells that a spreadsheet would compute."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from jobmeter.exchange.csv_writer import CsvWriter
from tests.running import workplace
from tests.several_users import jobmeter_of


def written(*cells: Any) -> list[str]:
    file = io.StringIO()
    CsvWriter(file).writerow(cells)
    return next(csv.reader(io.StringIO(file.getvalue(), newline="")))


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd|x", "@SUM(A1)", "\t=1", "\n=1", "--flag"])
def test_a_text_that_begins_like_a_formula_is_a_text(text: str) -> None:
    assert written(text) == ["'" + text]


def test_a_carriage_return_ends_no_row() -> None:
    assert written("\r=1", "b") == ["\\r=1", "b"]


def test_numbers_stay_numbers_and_other_texts_as_they_are() -> None:
    assert written(-5, -1.5, "-5", "+1.5e3", "a=b", "", "'x") == ["-5", "-1.5", "-5", "+1.5e3", "a=b", "", "'x"]


def test_no_command_prints_a_formula_as_csv() -> None:
    folder = workplace()
    store, evil = f"{folder}/store", "=HYPERLINK(1)"
    named = ("--name", evil, "--label", f"team={evil}", "--label", "@evil=x")
    done = jobmeter_of("run", "--quiet", "--store", store, *named, "--interval", "0.01", "--", "sleep", "0.1")
    assert done.returncode == 0, done.stderr
    spec = f"{folder}/flow.yaml"
    with open(spec, "w", encoding="utf-8") as file:
        file.write("name: demo\njobs:\n  - name: '=evil'\n    command: 'true'\n")
    jobmeter_of("workflow", "run", "--quiet", "--store", store, spec)
    for words in (
        ["ls", "--csv"],
        ["ls", "--csv", "--fields", "name,team,command"],
        ["stats", "--csv"],
        ["stats", "--csv", "--by", "team"],
        ["export"],
        ["export", "--series"],
        ["workflow", "results", "demo", "--csv"],
    ):
        done = jobmeter_of(*words, "--store", store)
        cells = [cell for row in csv.reader(io.StringIO(done.stdout)) for cell in row]
        assert cells or done.returncode, (words, done.stderr)
        assert not [cell for cell in cells if cell.startswith(("=", "@", "+"))], words
