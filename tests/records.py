"""Every run record that a test produces follows the schema: those in journals, in reports, and those printed."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from jobmeter.record.schema_files import read_schema

MOST_CHECKED = 200
"""Records of one journal, or of one test, that are looked at: checking one takes as long as indexing a thousand."""


@functools.cache
def validator(name: str = "run") -> Draft202012Validator:
    schema = json.loads(read_schema(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def violations(record: Any) -> list[str]:
    """Where a record does not follow the schema, and how."""
    return [f"{error.json_path}: {error.message}" for error in validator().iter_errors(record)]


def violations_of_schema(name: str, value: Any) -> list[str]:
    """Where a value does not follow the schema of this name, and how."""
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(value)]


def check_record(record: Any) -> None:
    """Fail the test whose record does not follow the schema."""
    messages = violations(record)
    assert not messages, f"run {record.get('id')} is no record of jobmeter.run/1: {'; '.join(messages)}"


def parse_record(text: str | bytes) -> Any:
    """The record that this JSON holds, checked. NaN and Infinity, which Python writes and JSON has not, are refused."""
    record = json.loads(text, parse_constant=_refuse)
    check_record(record)
    return record


def check_journals(folder: str) -> None:
    """Check the record lines of all journals below a directory."""
    for path in _journals(folder):
        for number, line in enumerate(_record_lines(path)):
            if number == MOST_CHECKED:
                break
            try:
                entry = json.loads(line, parse_constant=_refuse)
            except ValueError:
                continue  # torn: readers skip it, too
            check_record(entry["record"])


def _journals(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        if os.path.basename(place) == "journal":
            yield from (f"{place}/{name}" for name in names if name.endswith(".jsonl"))


def _record_lines(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from (line for line in file if line.startswith(b'{"record"'))
    except OSError:
        return  # a test removed it, or made it unreadable


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
