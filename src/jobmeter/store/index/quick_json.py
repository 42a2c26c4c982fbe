"""JSON for the index, which reads and writes millions of lines: by orjson, in a third of the time of `json`."""

from __future__ import annotations

import json
from typing import Any

from jobmeter.byte_text import without_surrogates
from jobmeter.journal.lines import parse_line

try:
    from orjson import dumps, loads
except ImportError:  # none for this platform

    def loads(text: bytes | str) -> Any:  # type: ignore[misc]
        raise ValueError

    def dumps(value: Any) -> bytes:  # type: ignore[misc]
        raise TypeError


def parse_journal_line(line: bytes) -> Any:
    """As `parse_line`: None if the line is not valid. A whole number beyond 64 bits may be a float."""
    try:
        return loads(line)
    except ValueError:
        return parse_line(line)  # lone surrogates, which earlier versions wrote, are valid here


def column_value(text: str) -> Any:
    """The value of a column that `column_text` made."""
    try:
        return loads(text)
    except ValueError:
        return json.loads(text)  # by an earlier version, or by hand


def column_text(value: Any) -> str:
    """The value as compact JSON for a column of the index: letters as they are, and no lone surrogates."""
    try:
        return dumps(value).decode()
    except TypeError:
        pass  # a lone surrogate, or a number beyond 64 bits
    return json.dumps(without_surrogates(value), ensure_ascii=False, separators=(",", ":"))
