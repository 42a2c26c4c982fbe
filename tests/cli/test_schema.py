"""`jobmeter schema`."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from jobmeter.cli.main import main
from jobmeter.record.schema_files import NAMES
from tests.running import jobmeter, meter


def test_the_schema_that_is_printed_validates_a_report() -> None:
    printed = jobmeter("schema")
    assert (0, "") == (printed.returncode, printed.stderr)
    schema = json.loads(printed.stdout)
    Draft202012Validator.check_schema(schema)
    assert [] == list(Draft202012Validator(schema).iter_errors(meter("true").record))


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_printed_by_name(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["schema", name])
    assert "https://json-schema.org/draft/2020-12/schema" == json.loads(capfd.readouterr().out)["$schema"]


def test_a_name_that_is_none_is_refused_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["schema", "nothing"])
    assert "jobmeter: schema: there is no schema 'nothing'. There is: run, cluster\n" == capfd.readouterr().err
