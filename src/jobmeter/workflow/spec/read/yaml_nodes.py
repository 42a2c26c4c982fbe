"""Reading YAML: its events, made into nodes. Tags, aliases and nesting depth are limited."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from jobmeter.workflow.spec.read.nodes import Mapping, Mark, Node, Scalar, Sequence
from jobmeter.workflow.spec.read.spec_errors import DEEPEST, Place, Problem, place_of, too_deep

MOST_REPEATED = 1_000_000
"""The most values that all aliases together may repeat: more is an attack, not a spec."""


def compose_yaml(text: str) -> Node | None:
    """The document in `text`; None if there is none. Raises Problem if it is not YAML, or harmful."""
    from ruamel.yaml.error import YAMLError

    try:
        return _YamlComposer(_quick_events(text)).document()
    except YAMLError:
        # The parser in C reads YAML 1.1, in which `{image: python:3.12}` is an error.
        pass
    try:
        return _YamlComposer(_events(text)).document()
    except YAMLError as error:
        raise _problem(text, error) from None


def _quick_events(text: str) -> Callable[[], Any]:
    """A function that returns the next event of `text`. The parser in C, if installed, takes a tenth of the time."""
    try:
        from _ruamel_yaml import CParser  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return _events(text)
    return CParser(text).get_event  # type: ignore[no-any-return,unused-ignore]


def _events(text: str) -> Callable[[], Any]:
    from ruamel.yaml import YAML

    events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)
    return lambda: next(events, None)


def _problem(text: str, error: Any) -> Problem:
    """The error of the parser, on one line and with its place."""
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.reader import ReaderError

    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        message = " ".join(str(error.problem or error.context or "it cannot be read").split())
        return Problem(f"this is not YAML: {message}", place=place_of(mark) if mark is not None else None)
    if isinstance(error, ReaderError):
        code = error.character if isinstance(error.character, int) else ord(error.character)
        line = text.count("\n", 0, error.position) + 1
        place = Place(line, error.position - text.rfind("\n", 0, error.position))
        return Problem(f"this is not YAML: U+{code:04X} is not allowed in it", place=place)
    return Problem(f"this is not YAML: {' '.join(str(error).split())}")


class _YamlComposer:
    """Makes nodes of events, without recursion, and counts the values that aliases repeat."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        self._next = next_event
        self._anchors: dict[str, tuple[Node, int, int]] = {}
        self._written = 0

    def document(self) -> Node | None:
        from ruamel.yaml import events

        root: Node | None = None
        while (event := self._next()) is not None:
            if isinstance(event, events.DocumentStartEvent):
                if root is not None:
                    raise Problem("a second document begins here. Write each spec into a file of its own.", event)
                root = self._tree(events)
        return root

    def _tree(self, events: Any) -> Node:
        """The nodes up to the end of the document: one loop, so that no depth can exhaust the stack."""
        scalar, alias = events.ScalarEvent, events.AliasEvent
        mapping, sequence = events.MappingStartEvent, events.SequenceStartEvent
        open_nodes: list[_Open] = []
        advance = self._next
        while True:
            event = advance()
            kind = type(event)
            size, depth = 1, 0
            node: Node
            if kind is scalar:
                self._written += 1
                node = Scalar(event.value, event.start_mark, event.end_mark, event.style or "")
                if event.anchor or event.ctag:
                    self._named(event, node, 1, 0)
            elif kind is alias:
                node, size, depth = self._aliased(event, open_nodes)
            elif kind is mapping or kind is sequence:
                self._written += 1
                new: Mapping | Sequence = (Mapping if kind is mapping else Sequence)(event.start_mark, event.flow_style)
                open_nodes.append(_Open(new, event))
                if len(open_nodes) > DEEPEST:
                    raise too_deep(place_of(event.start_mark))
                continue
            else:  # the end of a mapping or a sequence
                ended = open_nodes.pop()
                node, size, depth = ended.node, ended.size, ended.depth
                node.end = event.end_mark
                if depth > DEEPEST:  # through aliases of values that have aliases
                    raise too_deep(place_of(ended.event.start_mark))
                if size - self._written > MOST_REPEATED:
                    raise Problem(f"its aliases repeat over {MOST_REPEATED:,} values", ended.event)
                if ended.event.anchor or ended.event.ctag:
                    self._named(ended.event, node, size, depth)
            if not open_nodes:
                return node
            open_nodes[-1].add(node, size, depth, event.end_mark)

    def _named(self, event: Any, node: Node, size: int, depth: int) -> None:
        tag = str(event.ctag or "")
        if tag not in ("", "!") and not re.fullmatch(r"tag:yaml\.org,2002:\w+", tag):
            raise Problem(f"the tag {tag!r} is not supported here. Remove it", event)
        if event.anchor:
            self._anchors[event.anchor] = node, size, depth

    def _aliased(self, event: Any, open_nodes: list[_Open]) -> tuple[Node, int, int]:
        if any(outer.event.anchor == event.anchor for outer in open_nodes):
            raise Problem(f"*{event.anchor} refers to a value that contains it", event)
        if event.anchor not in self._anchors:
            raise Problem(f"there is no &{event.anchor} before this *{event.anchor}", event)
        return self._anchors[event.anchor]


class _Open:
    """A mapping or sequence whose end is not reached yet; its size and depth count aliases as if written out."""

    __slots__ = ("_key", "depth", "event", "node", "size")

    def __init__(self, node: Mapping | Sequence, event: Any) -> None:
        self.node = node
        self.event = event
        self.size = 1
        self.depth = 1
        self._key: Node | None = None

    def add(self, node: Node, size: int, depth: int, end: Mark) -> None:
        self.size += size
        if depth >= self.depth:
            self.depth = depth + 1
        owner = self.node
        if isinstance(owner, Sequence):
            owner.items.append(node)
        elif self._key is None:
            self._key = node
        else:
            owner.pairs.append((self._key, node))
            owner.ends.append(end)
            self._key = None
