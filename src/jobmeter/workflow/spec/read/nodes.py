"""A document as it is written in its file: every value with its position.

Scalars keep the text that a person wrote. The field determines what the text means:
`1.10` is a version in a label and a number in `cpus`, `on` is a key, and `01:30:00`
is not a number in base 60.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Protocol, Union

from jobmeter.errors import quote
from jobmeter.workflow.spec.read.spec_errors import Path, Problem, place_of


class Mark(Protocol):
    """A position in a text, as ruamel.yaml has it."""

    @property
    def index(self) -> int:
        """The number of characters before it."""

    @property
    def line(self) -> int:
        """The number of lines before it."""

    @property
    def column(self) -> int:
        """The number of characters before it in its line."""


class TextPosition:
    """Our implementation of `Mark`."""

    __slots__ = ("column", "index", "line")

    def __init__(self, index: int, line: int, column: int) -> None:
        self.index = index
        self.line = line
        self.column = column


class Lines:
    """Finds the line and the column of any index of a text."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def position(self, index: int) -> TextPosition:
        line = bisect_right(self._starts, index) - 1
        return TextPosition(index, line, index - self._starts[line])


class Scalar:
    """A text, a number, a truth value or nothing."""

    __slots__ = ("end", "start", "style", "value")

    def __init__(self, value: str, start: Mark, end: Mark, style: str) -> None:
        self.value = value
        self.start = start
        self.end = end
        self.style = style  # its quote, `|` or `>`; empty if it is written without quotes

    @property
    def is_nothing(self) -> bool:
        return not self.style and self.value in _NOTHING


class Sequence:
    """A list of nodes."""

    __slots__ = ("end", "flow", "items", "start")

    def __init__(self, start: Mark, flow: bool) -> None:
        self.start = start
        self.end = start
        self.flow = flow  # written in brackets
        self.items: list[Node] = []


class Mapping:
    """Pairs of nodes: key and value. A merge by `<<` is one of the pairs: see `merged`."""

    __slots__ = ("end", "ends", "flow", "pairs", "start")

    def __init__(self, start: Mark, flow: bool) -> None:
        self.start = start
        self.end = start
        self.flow = flow  # written in braces
        self.pairs: list[tuple[Node, Node]] = []
        self.ends: list[Mark] = []  # of each pair: an alias ends elsewhere than the node it stands for


Node = Union[Scalar, Sequence, Mapping]
"""An alias is the node that it stands for: the same object at several places."""

MERGE = "<<"
_NOTHING = frozenset(("", "~", "null", "Null", "NULL"))


def merged(mapping: Mapping) -> Iterator[tuple[str, Node, Node]]:
    """The keys of `mapping`, each with its node and its value; its own keys take precedence over merged ones."""
    names = set()
    for key, value in mapping.pairs:
        if isinstance(key, Scalar) and not is_merge(key):
            names.add(key.value)
            yield key.value, key, value
    for key, value in mapping.pairs:
        if isinstance(key, Scalar) and is_merge(key):
            for source in value.items if isinstance(value, Sequence) else [value]:
                for name, name_node, inner in merged(source) if isinstance(source, Mapping) else ():
                    if name not in names:
                        names.add(name)
                        yield name, name_node, inner


def is_merge(key: Scalar) -> bool:
    return key.value == MERGE and not key.style


def find(root: Node, path: Path) -> tuple[Node, Node | None]:
    """The node at `path` and its key; if there is no such node, those of the nearest node on the way to it."""
    node, key = root, None
    for part in path:
        step = _step(node, part)
        if step is None:
            break
        node, key = step
    return node, key


def _step(node: Node, part: str | int) -> tuple[Node, Node | None] | None:
    if isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
        return node.items[part], None
    if isinstance(node, Mapping):
        for name, key, value in merged(node):
            if name == part:
                return value, key
    return None


_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def json_value(node: Node) -> Any:
    """The value as JSON has it: a scalar without quotes may be a number, a truth value or null."""
    if isinstance(node, Sequence):
        return [json_value(item) for item in node.items]
    if isinstance(node, Mapping):
        return {name: json_value(value) for name, _, value in merged(node)}
    if node.style:
        return node.value
    if node.value in _NOTHING:
        return None
    if _NUMBER.fullmatch(node.value):
        return json.loads(node.value)
    return _TRUTH.get(node.value, node.value)


def node_of(value: Any, start: Mark, end: Mark) -> Node:
    """A JSON value as nodes, all of them at the same position."""
    if isinstance(value, dict):
        mapping = Mapping(start, flow=True)
        for key, inner in value.items():
            mapping.pairs.append((Scalar(key, start, start, '"'), node_of(inner, start, end)))
            mapping.ends.append(end)
        return mapping
    if isinstance(value, list):
        sequence = Sequence(start, flow=True)
        sequence.items = [node_of(inner, start, end) for inner in value]
        return sequence
    is_text = isinstance(value, str)
    return Scalar(value if is_text else json.dumps(value), start, end, '"' if is_text else "")


def values(node: Node) -> Any:
    """The values without positions: dicts, lists, texts and None. Raises Problem if a key is written twice."""
    if isinstance(node, Scalar):
        return None if not node.style and node.value in _NOTHING else node.value
    if isinstance(node, Sequence):
        return [values(item) for item in node.items]
    mapping = {key.value if isinstance(key, Scalar) else None: values(value) for key, value in node.pairs}
    if len(mapping) != len(node.pairs) or None in mapping or MERGE in mapping:
        _check_keys(node)
        return {name: values(value) for name, _, value in merged(node)}
    return mapping


def _check_keys(mapping: Mapping) -> None:
    names = set()
    for key, value in mapping.pairs:
        if not isinstance(key, Scalar):
            raise Problem("a key must be a word", place=place_of(key.start))
        if key.value in names:
            raise Problem(f"the key {quote(key.value)} is written twice", place=place_of(key.start))
        names.add(key.value)
        if is_merge(key):
            sources = value.items if isinstance(value, Sequence) else [value]
            if not all(isinstance(source, Mapping) for source in sources):
                raise Problem("only mappings can be merged by '<<'", place=place_of(key.start))
