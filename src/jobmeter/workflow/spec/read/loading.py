"""Reading the file of a spec: YAML, JSON, JSON5, TOML or KDL, by its extension."""

from __future__ import annotations

import importlib
import os
from typing import Any, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.workflow.spec.read.nodes import Node, find, values
from jobmeter.workflow.spec.read.spec_errors import Path, Place, Problem, place_of, refuse

LARGEST = 256 * 2**20
"""The most bytes of a file. A spec that lists a million jobs one by one has no more."""
FORMATS = {".yaml": "YAML", ".yml": "YAML", ".json": "JSON", ".json5": "JSON5", ".toml": "TOML", ".kdl": "KDL"}
_COMPOSERS = {
    "YAML": "yaml_nodes:compose_yaml",
    "JSON": "json_nodes:compose_json",
    "JSON5": "json_nodes:compose_json5",
    "TOML": "toml_nodes:compose_toml",
    "KDL": "kdl_nodes:compose_kdl",
}
"""The function that makes nodes of a text, by format; imported when used."""


class Document(NamedTuple):
    """The content of a file: dicts, lists, texts and None, and the nodes they were read from."""

    path: str
    format: str
    text: str
    values: Any
    root: Node | None  # None: the file is empty

    def place(self, path: Path) -> Place | None:
        """The place of the key of a value, or of the value if it has no key; else of the nearest value around it."""
        if self.root is None:
            return None
        node, key = find(self.root, path)
        return place_of((node if key is None else key).start)


def read_document(path: str) -> Document:
    """The document in the file. Raises UsageError, with path and line, if it cannot be read."""
    text = read_text(path)
    return parse_document(path, text)


def parse_document(path: str, text: str) -> Document:
    """`text`, read as if it were the content of the file `path`. Raises UsageError if it cannot be read."""
    kind = format_of(path)
    try:
        root = _compose(kind, text)
        return Document(path, kind, text, None if root is None else values(root), root)
    except Problem as problem:
        raise refuse(path, [problem]) from None


def format_of(path: str) -> str:
    extension = os.path.splitext(path)[1].lower()
    if extension not in FORMATS:
        *others, last = FORMATS
        raise UsageError(f"{path}: the file of a spec ends in {', '.join(others)} or {last}")
    return FORMATS[extension]


def is_spec(path: str) -> bool:
    """Whether a path has the extension of a spec."""
    return path.lower().endswith(tuple(FORMATS))


def read_text(path: str) -> str:
    """The text of the file, with its line breaks unchanged. Raises UsageError if it cannot be read or is not text."""
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
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise UsageError(f"{path}:{line}:{column}: is not UTF-8 text") from None


def _compose(kind: str, text: str) -> Node | None:
    # A byte order mark is not part of the document.
    without_mark = text.removeprefix("\ufeff")
    if not without_mark.strip():
        return None
    module, function = _COMPOSERS[kind].split(":")
    composed: Node | None = getattr(importlib.import_module(f"jobmeter.workflow.spec.read.{module}"), function)(
        without_mark
    )
    return composed
