"""Finding the line of a value in TOML, which parsers do not report."""

from __future__ import annotations

import functools
import re

from jobmeter.workflow.spec.read.spec_errors import Path

_KEY = re.compile(r"""\s*([\w"'. -]+?)\s*=""")
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?")


def find_line(text: str, path: Path) -> int | None:
    """The line where the value at `path` is written, of the nearest around it when it is not written."""
    lines = _lines(text)
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


@functools.lru_cache(maxsize=1)
def _lines(text: str) -> dict[Path, int]:
    """The lines of all tables and of the keys at the beginning of a line; what is in brackets is not searched."""
    lines: dict[Path, int] = {}
    counts: dict[str, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _table(header[2], header[1] == "[[", counts)
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_keys(key[1])), number)
    return lines


def _table(name: str, is_array: bool, counts: dict[str, int]) -> Path:
    """The path of a table; of `[[jobs]]` and below it with the index of the present one."""
    if is_array:
        counts[name] = counts.get(name, -1) + 1
        for inner in [other for other in counts if other.startswith(f"{name}.")]:
            del counts[inner]
    path: list[str | int] = []
    so_far = ""
    for key in _keys(name):
        so_far = f"{so_far}.{key}" if so_far else key
        path.append(key)
        if so_far in counts:
            path.append(counts[so_far])
    return tuple(path)


def _keys(name: str) -> list[str]:
    return [part.strip().strip("\"'") for part in name.split(".")]
