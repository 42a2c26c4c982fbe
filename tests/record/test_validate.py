"""The checks that are made from the types agree with the schema that is made from them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmeter.record.validate import check_indexed, check_record
from tests.fuzz.commands import bounded
from tests.fuzz.mutations import mutated_value
from tests.fuzz.test_journals import journal_lines
from tests.records import violations

RECORD = next(line["record"] for line in journal_lines("aaa1") if "record" in line)


@bounded(150)
@given(st.randoms(use_true_random=False))
def test_what_the_checks_pass_follows_the_schema(rng: Random) -> None:
    record = mutated_value(RECORD, rng)
    if check_record(record) is None:
        assert [] == violations(record)
    elif not violations(record):
        # Only what no schema can say: text, dates that exist, and fields that it does not know.
        assert not _is_rendered(record) or "not a date" in str(check_record(record))


def _is_rendered(record: Any) -> bool:
    """Whether all of it is JSON of moderate numbers and depth, without lone surrogates."""
    try:
        text = json.dumps(record, allow_nan=False, ensure_ascii=False)
        text.encode("utf-8", "surrogateescape")
    except (ValueError, RecursionError):
        return False
    return len(text) < 20_000 and "0" * 30 not in text and "e+308" not in text and "[" * 10 not in text


def test_a_record_passes_whole_and_in_the_part_that_is_indexed() -> None:
    assert (None, None) == (check_record(RECORD), check_indexed(RECORD))
    part = {name: RECORD[name] for name in RECORD if name not in ("measurements", "processes", "provenance")}
    assert check_indexed(part) is None
    assert ".measurements is missing" == check_record(part)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("name", None, ".name is null, not a text"),
        ("name", "\ud800", ".name has a lone surrogate, which is no text"),
        ("wall_seconds", True, ".wall_seconds is true or false, not a number"),
        ("wall_seconds", float("nan"), ".wall_seconds is 'nan', not from 0 to 1e+11"),
        ("labels", {"a": 1}, ".labels.a is a number, not a text"),
        ("id", "abc\n", ".id is 'abc\\n', which is not of the form ^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"),
        ("started", "2026-02-30T00:00:00Z", ".started is '2026-02-30T00:00:00Z', not a date and time in UTC"),
        ("later", {"a": float("inf")}, ".later is inf, not a finite number"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(field: str, value: Any, problem: str) -> None:
    assert problem == check_record({**RECORD, field: value})


def test_bytes_that_are_no_utf_8_are_text() -> None:
    assert check_record({**RECORD, "command": ["cat", "caf\udce9"]}) is None


def test_whole_numbers_may_be_written_as_floats() -> None:
    assert check_record({**RECORD, "host": {"cpus": 2.0}}) is None
    assert check_record({**RECORD, "host": {"cpus": 2.5}}) is not None
