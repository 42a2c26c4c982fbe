"""Reading the file of a spec: YAML, JSON or TOML, by its extension."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import Any, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.workflow.spec.read.nodes import Node, find, values
from jobmeter.workflow.spec.read.spec_errors import DEEPEST, Path, Problem, refuse, too_deep

LARGEST = 256 * 2**20
"""Bytes. A spec written out for a million jobs has no more."""
FORMATS = {".yaml": "YAML", ".yml": "YAML", ".json": "JSON", ".toml": "TOML"}


class Document(NamedTuple):
    """The content of a file: dicts, lists, texts and None."""

    path: str
    format: str
    text: str
    values: Any
    root: Node | None  # of YAML and JSON

    def line(self, path: Path) -> int | None:
        """The line of the value, or of its key; of the nearest around it when there is none."""
        if self.format == "TOML":
            from jobmeter.workflow.spec.read.toml_lines import find_line

            return find_line(self.text, path)
        if self.root is None:
            return None
        node, key = find(self.root, path)
        return (node if key is None else key).start.line + 1


def read_document(path: str) -> Document:
    """The document in the file. UsageError, with path and line, when it cannot be read."""
    text = read_text(path)
    return parse_document(path, text)


def parse_document(path: str, text: str) -> Document:
    """`text`, read as the file `path` would be. UsageError when it cannot be."""
    kind = format_of(path)
    try:
        if kind == "TOML":
            return Document(path, kind, text, _toml_values(text), None)
        root = _compose(kind, text)
        return Document(path, kind, text, None if root is None else values(root), root)
    except Problem as problem:
        raise refuse(path, [problem]) from None


def format_of(path: str) -> str:
    extension = os.path.splitext(path)[1].lower()
    if extension not in FORMATS:
        raise UsageError(f"{path}: the file of a spec ends in .yaml, .yml, .json or .toml")
    return FORMATS[extension]


def read_text(path: str) -> str:
    """The text of the file, its line ends as they are. UsageError when it is none."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except IsADirectoryError:
        raise UsageError(f"{path}: is a directory, not the file of a spec") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path
        raise UsageError(f"{path!r}: {error}") from None
    if len(content) > LARGEST:
        raise UsageError(f"{path}: is larger than {LARGEST >> 20} MiB. Write a sweep with `parameters` instead.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: is not UTF-8 text") from None


def _compose(kind: str, text: str) -> Node | None:
    # A byte order mark is no part of the document.
    without_mark = text.removeprefix("\ufeff")
    if kind == "JSON":
        from jobmeter.workflow.spec.read.json_nodes import compose_json

        return compose_json(without_mark) if without_mark.strip() else None
    from jobmeter.workflow.spec.read.yaml_nodes import compose_yaml

    return compose_yaml(without_mark)


def _toml_values(text: str) -> Any:
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef,import-not-found,unused-ignore]

    try:
        # Numbers keep the text that was written, as in the other formats.
        return _as_text(tomllib.loads(text.removeprefix("\ufeff"), parse_float=str), 0)
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:
        message, line = _toml_place(str(error), text)
        raise Problem(f"this is not TOML: {message}", line=line) from None


def _toml_place(message: str, text: str) -> tuple[str, int | None]:
    """The message of `tomllib`, and the line that it names: `… (at line 3, column 7)`."""
    problem, _, place = message.rpartition(" (at ")
    if not problem:
        return message, None
    if place.startswith("line "):
        return problem, int(place[5:].partition(",")[0])
    return problem, text.count("\n") + 1  # "at end of document"


def _as_text(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise too_deep()
    if isinstance(value, dict):
        return {key: _as_text(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_text(inner, depth + 1) for inner in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()  # 01:30:00 is a time of day to TOML
    return str(value)


@contextmanager
def collecting_nothing() -> Iterator[None]:
    """Disables the garbage collector, which would scan a large document again and again: 3/4 of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
