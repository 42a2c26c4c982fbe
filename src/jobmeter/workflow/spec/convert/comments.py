"""The comments of a spec, each with the value that it belongs to: found between the values, in all formats."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from jobmeter.workflow.spec.read.loading import Document
from jobmeter.workflow.spec.read.nodes import Mapping, Node, Scalar, Sequence

_HASH = re.compile(r"(?:^|(?<=\s))#[ \t]?([^\r\n]*)|\"(?:[^\"\\]|\\.)*\"|'[^']*'", re.MULTILINE)
_SLASHES = re.compile(r"//[ \t]?([^\r\n]*)|/\*(.*?)\*/|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_PATTERNS = {"YAML": _HASH, "TOML": re.compile(_HASH.pattern.replace(r"(?:^|(?<=\s))", ""), re.MULTILINE)}
HAS_COMMENTS = {"YAML": "#", "TOML": "#", "JSON5": "//", "KDL": "//"}
"""What a comment begins with, by format; JSON has no comments."""


class Comments:
    """Returns each comment once, when the key or item that it stands before or beside is written."""

    def __init__(self, document: Document | None) -> None:
        self._before: dict[int, list[str]] = {}
        self._beside: dict[int, list[str]] = {}
        self.after: list[str] = []  # after the last value
        self.count = 0
        if document is not None and document.root is not None and document.format in HAS_COMMENTS:
            self._place(document, document.root)

    def before(self, index: int) -> list[str]:
        """The comment above the key or item that begins at this index of the text, as lines."""
        return self._before.pop(index, [])

    def beside(self, index: int) -> str:
        """The comment on the same line, behind the key or item that begins at this index."""
        return " ".join(self._beside.pop(index, []))

    def within(self, node: Node) -> list[str]:
        """All comments before or beside the parts of a value, for a value that is written on one line."""
        return [line for start in _starts(node) for line in (*self.before(start), *self._beside.pop(start, []))]

    def rest(self) -> list[str]:
        """All comments that were not returned yet, so that none is lost."""
        left = [line for lines in (*self._before.values(), *self._beside.values()) for line in lines]
        return [*left, *self.after]

    def _place(self, document: Document, root: Node) -> None:
        text = document.text.removeprefix("\ufeff")
        spans = sorted(set(_spans(root, text)))
        starts = sorted(set(_starts(root)))
        for comment in _comments(text, document.format, spans):
            self.count += 1
            line_start = text.rfind("\n", 0, comment.at) + 1
            owners = starts[bisect_left(starts, line_start) : bisect_right(starts, comment.at)]
            if owners and not comment.is_alone:
                self._beside.setdefault(owners[0], []).extend(comment.lines)
                continue
            following = bisect_right(starts, comment.at)
            if following == len(starts):
                self.after += comment.lines
            else:
                self._before.setdefault(starts[following], []).extend(comment.lines)


class _Comment(NamedTuple):
    at: int
    lines: list[str]
    is_alone: bool  # nothing stands before it on its line


def _comments(text: str, kind: str, spans: list[tuple[int, int]]) -> Iterator[_Comment]:
    pattern = _PATTERNS.get(kind, _SLASHES)
    at = 0
    for start, end in [*spans, (len(text), len(text))]:
        for match in pattern.finditer(text, at, max(start, at)):
            words = next((group for group in match.groups() if group is not None), None)
            if words is None:
                continue  # a quoted text in a part that is commented out
            lines = [line.strip().removeprefix("* ").rstrip() for line in words.strip().splitlines()] or [""]
            line_start = text.rfind("\n", 0, match.start()) + 1
            yield _Comment(match.start(), lines, not text[line_start : match.start()].strip())
        at = max(at, end)


def _spans(node: Node, text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each scalar: no comment begins there. A block of YAML may have one behind its `|`."""
    for inner in _scalars(node):
        start = inner.start.index
        if inner.style in ("|", ">"):
            start = text.find("\n", start) + 1
        yield start, inner.end.index


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _scalars(item)
    else:
        for key, value in node.pairs:
            yield from _scalars(key)
            yield from _scalars(value)


def _starts(node: Node) -> Iterator[int]:
    """Where the keys of mappings and the items of lists begin."""
    if isinstance(node, Sequence):
        for item in node.items:
            yield item.start.index
            yield from _starts(item)
    elif isinstance(node, Mapping):
        for key, value in node.pairs:
            yield key.start.index
            yield from _starts(value)
