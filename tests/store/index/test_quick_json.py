"""JSON of the index: what orjson reads and writes is what `json` would, and without orjson it is the same."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from jobmeter.byte_text import without_surrogates
from jobmeter.journal.lines import parse_line
from jobmeter.store.index.quick_json import column_text, column_value, parse_journal_line
from tests.running import environment

LINES = [
    b'{"a":[1,2.5,null,true,"\\u00e9\\ud83d\\ude00"]}\n', b'["caf\\udce9","\\ud800"]\n', b'"caf\xc3\xa9"',
    b'{"a":1,"a":2}', b"[1e999]", b"[NaN]", b"[1] 2", b"[1", b"", b"\n", b'["\xff"]', b'["\x00"]', b"[" * 5000,
    b"1" * 400, b"\xef\xbb\xbf1", b"-0",
]  # fmt: skip
VALUES: list[Any] = [
    {},
    [],
    {"team": "a", 'quote " \\ /': "line\nend \x01\x7f"},
    ["caf\udce9", "日本 😀\u2028"],
    [1 << 70, -(1 << 63), 0.1],
]
JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**63), 2**64 - 1) | some.floats(allow_nan=False) | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
)


@given(some.binary() | JSON.map(lambda value: json.dumps(value).encode()))
@example(b'{"a":"\\ud800"}')
def test_a_line_is_read_as_by_json(line: bytes) -> None:
    assert parse_line(line) == parse_journal_line(line)


@pytest.mark.parametrize("line", LINES, ids=lambda line: ascii(line[:20]))
def test_lines_that_orjson_refuses_or_that_nobody_reads_are_read_as_by_json(line: bytes) -> None:
    assert parse_line(line) == parse_journal_line(line)


def test_a_whole_number_beyond_64_bits_is_as_large_as_it_was() -> None:
    assert float(1 << 70) == float(parse_journal_line(b"[%d]" % (1 << 70))[0])


@given(JSON.filter(lambda value: value == value))
def test_the_text_of_a_column_means_the_value(value: Any) -> None:
    finite = json.loads(json.dumps(value).replace("Infinity", "0"))
    assert without_surrogates(finite) == json.loads(column_text(finite)) == column_value(column_text(finite))


@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_the_text_of_a_column_is_utf_8_and_compact(value: Any) -> None:
    text = column_text(value)
    assert text.encode().decode() == json.dumps(without_surrogates(value), ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("text", ['{"a": "\\udce9"}', "[1e999]"])
def test_a_column_that_orjson_refuses_is_read_as_by_json(text: str) -> None:
    assert json.loads(text) == column_value(text)


def test_without_orjson_all_of_it_is_the_same() -> None:
    code = (
        "import sys; sys.modules['orjson'] = None\n"
        "from jobmeter.store.index.quick_json import column_text, parse_journal_line\n"
        f"print(ascii([parse_journal_line(line) for line in {LINES!r}]))\n"
        f"print(ascii([column_text(value) for value in {VALUES!a}]))\n"
    )
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout
    expected = [parse_journal_line(line) for line in LINES], [column_text(value) for value in VALUES]
    assert [ascii(each) for each in expected] == printed.splitlines()
