"""Reading TOML: as nodes, like the other formats.

`tomllib` checks whether the text is valid; the nodes are then made of the tokens of the text, because `tomllib` does
not report where each value stands.
"""

from __future__ import annotations

import re
from typing import Any

from jobmeter.workflow.spec.read.nodes import Lines, Mapping, Mark, Node, Scalar, Sequence, TextPosition
from jobmeter.workflow.spec.read.spec_errors import DEEPEST, Place, Problem, place_of, too_deep

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*""")
_VALUE = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\]|\\.)*"|\'[^\']*\'|'
    r"[^\s,\]}#]+(?: \d\d:[^\s,\]}#]+)?",  # a date may have a space before its time
    re.DOTALL,
)
_INTEGER = re.compile(r"[+-]?\d[\d_]*|0[xob][\da-fA-F_]+")


def compose_toml(text: str) -> Node:
    """The document in `text`. Raises Problem if it is not TOML."""
    try:
        _parse(text)
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:
        message, place = _place(str(error), text)
        raise Problem(f"this is not TOML: {message}", place=place) from None
    return _Composer(text).document()


def _parse(text: str) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef,import-not-found,unused-ignore]

    return tomllib.loads(text)


def _place(message: str, text: str) -> tuple[str, Place | None]:
    """The message of `tomllib`, and the place that it names: `… (at line 3, column 7)`."""
    problem, _, at = message.rpartition(" (at ")
    if not problem:
        return message, None
    if match := re.match(r"line (\d+), column (\d+)", at):
        return problem, Place(int(match[1]), int(match[2]))
    return problem, place_of(Lines(text).position(len(text)))  # "at end of document"


class _Composer:
    """Makes nodes of a text that is known to be valid."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._position = Lines(text).position
        self._root = Mapping(self._position(0), flow=False)
        self._names: dict[int, dict[str, Node]] = {}  # id of a mapping → its keys and values

    def document(self) -> Mapping:
        table = self._root
        while self._skip_space() < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table, 1)
        self._root.end = self._position(len(self._text))
        return self._root

    def _header(self) -> Mapping:
        """Read a header and return its table, a new one in an array of tables: the pairs that follow belong to it."""
        start = self._position(self._at)
        is_array = self._text.startswith("[[", self._at)
        self._at += 1 + is_array
        keys = self._keys()
        self._at = self._text.index("]", self._at) + 1 + is_array
        if len(keys) > DEEPEST:
            raise too_deep(place_of(start))
        owner = self._root
        for key in keys[:-1]:
            owner = self._inner(owner, key)
        if is_array:
            return self._append_table(owner, keys[-1], start)
        table = self._inner(owner, keys[-1])
        table.start = start
        return table

    def _append_table(self, owner: Mapping, key: Scalar, start: TextPosition) -> Mapping:
        tables = self._names.setdefault(id(owner), {}).get(key.value)
        if tables is None:
            tables = Sequence(start, flow=False)
            self._add(owner, key, tables, _elsewhere(start))
        assert isinstance(tables, Sequence), "tomllib let it pass"
        table = Mapping(start, flow=False)
        table.end = self._position(self._at)
        tables.items.append(table)
        return table

    def _inner(self, owner: Mapping, key: Scalar) -> Mapping:
        """The table of that name, or the last one of an array of tables; created if there is none."""
        inner = self._names.setdefault(id(owner), {}).get(key.value)
        if isinstance(inner, Sequence):
            inner = inner.items[-1]
        if inner is None:
            inner = Mapping(key.start, flow=False)
            inner.end = key.end
            self._add(owner, key, inner, _elsewhere(key.start))
        assert isinstance(inner, Mapping), "tomllib let it pass"
        return inner

    def _add(self, owner: Mapping, key: Scalar, value: Node, end: TextPosition) -> None:
        self._names.setdefault(id(owner), {})[key.value] = value
        owner.pairs.append((key, value))
        owner.ends.append(end)

    def _pair(self, table: Mapping, depth: int) -> None:
        keys = self._keys()
        self._at = self._text.index("=", self._at) + 1
        for key in keys[:-1]:
            table = self._inner(table, key)
        value = self._value(depth + len(keys))
        self._add(table, keys[-1], value, self._position(self._at))

    def _keys(self) -> list[Scalar]:
        """`a.b."c d"`."""
        keys = []
        while True:
            match = _KEY.match(self._text, self._at)
            assert match is not None, "tomllib let it pass"
            quote = match[1][0] if match[1][0] in "\"'" else ""
            value = self._decoded(match[1]) if quote else match[1]
            keys.append(Scalar(value, self._position(match.start(1)), self._position(match.end(1)), quote))
            self._at = match.end()
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _value(self, depth: int) -> Node:
        start = self._position(self._skip_space())
        if depth > DEEPEST:
            raise too_deep(place_of(start))
        first = self._text[self._at]
        if first == "[":
            sequence = Sequence(start, flow=True)
            self._at += 1
            while not self._closes("]"):
                sequence.items.append(self._value(depth + 1))
            sequence.end = self._position(self._at)
            return sequence
        if first == "{":
            mapping = Mapping(start, flow=True)
            self._at += 1
            while not self._closes("}"):
                self._pair(mapping, depth)
            mapping.end = self._position(self._at)
            return mapping
        return self._scalar(start)

    def _closes(self, bracket: str) -> bool:
        """Go on to the next value between brackets. If there is none, pass the closing bracket and return True."""
        self._skip_space()
        if self._text[self._at] == ",":
            self._at += 1
            self._skip_space()
        if self._text[self._at] == bracket:
            self._at += 1
            return True
        return False

    def _scalar(self, start: TextPosition) -> Scalar:
        match = _VALUE.match(self._text, self._at)
        assert match is not None, "tomllib let it pass"
        self._at = match.end()
        token = match[0]
        quote = token[0] if token[0] in "\"'" else ""
        value = self._decoded(token) if quote else _plain(token)
        return Scalar(value, start, self._position(self._at), quote)

    def _decoded(self, token: str) -> str:
        if "\\" not in token and token[:3] not in ('"""', "'''"):
            return token[1:-1]
        return str(_parse(f"value = {token}")["value"])

    def _skip_space(self) -> int:
        match = _SPACE.match(self._text, self._at)
        assert match is not None, "it matches nothing too"
        self._at = match.end()
        return self._at


def _elsewhere(start: Mark) -> TextPosition:
    """The end of a table that has its own header: it is on no line of the mapping that it belongs to."""
    return TextPosition(start.index, -1, 0)


def _plain(token: str) -> str:
    """Numbers keep the text that was written, as in the other formats, without underscores; integers are decimal."""
    if _INTEGER.fullmatch(token):
        return str(int(token.replace("_", ""), 0))
    if token[0].isdigit() or token[0] in "+-":
        return token.replace("_", "").removeprefix("+")
    return token
