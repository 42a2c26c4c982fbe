"""Reading KDL, version 1 and 2: as nodes, like the other formats.

A library checks whether the text is valid; the nodes are then made of the tokens of the text, because no library
reports where each value stands. `kdl_shape` has which lists and mappings the nodes of KDL stand for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from jobmeter.workflow.spec.read.kdl_shape import Entry, KdlNode, shaped
from jobmeter.workflow.spec.read.nodes import Lines, Node, Scalar
from jobmeter.workflow.spec.read.spec_errors import DEEPEST, Place, Problem, place_of, too_deep

_BLANK = re.compile(r"(?:[^\S\r\n\u0085\u2028\u2029\f]|\ufeff|\\[^\S\n]*(?://[^\n]*)?\r?\n)+")
_COMMENT = re.compile(r"//[^\r\n]*")
_NEWLINE = re.compile(r"[\r\n\u0085\u2028\u2029\f;]+")
_STRING = re.compile(r'r?(#*)"""\r?\n.*?"""\1|r(#*)".*?"\2|(#+)".*?"\3|"(?:[^"\\]|\\.)*"', re.DOTALL)
_WORD = re.compile(r'[^\s;{}()=/\\"\ufeff]+')
_NUMBER = re.compile(r"[+-]?\d[\d_]*(?:\.[\d_]+)?(?:[eE][+-]?[\d_]+)?")
_BASED = re.compile(r"([+-]?)(0[xob][\da-fA-F_]+)")
_KEYWORDS = {"#true": "true", "#false": "false", "#null": "null", "#inf": "inf", "#-inf": "-inf", "#nan": "nan"}


def compose_kdl(text: str) -> Node | None:
    """The document in `text`; None if there is none. Raises Problem if it is not KDL."""
    import ckdl

    _check_depth(text)
    try:
        ckdl.parse(text)
    except ckdl.ParseError as error:
        raise _problem(text, str(error)) from None
    nodes = _Composer(text).nodes(1)
    return shaped(nodes, Lines(text).position(0)) if nodes else None


def _check_depth(text: str) -> None:
    """Raise Problem, before the library reads the text, if it is nested too deeply.

    The quick count at first includes braces in texts: that does no harm.
    """
    depth = 0
    if text.count("{") <= DEEPEST:
        return
    for match in _TOKENS.finditer(text):
        if match["open"]:
            depth += 1
            if depth > DEEPEST:
                raise too_deep(place_of(Lines(text).position(match.start())))
        elif match["close"]:
            depth -= 1


_TOKENS = re.compile(rf"{_STRING.pattern}|//[^\n]*|(?P<open>\{{)|(?P<close>\}})", re.DOTALL)


def _problem(text: str, message: str) -> Problem:
    """The error of the library. It names no place, so the place is where the text can no longer be read."""
    words = message[:1].lower() + message[1:] if message else "it cannot be read"
    return Problem(f"this is not KDL: {words}", place=_first_mistake(text))


def _first_mistake(text: str) -> Place:
    """The start of the line with which the text becomes invalid: a binary search for the fewest lines that are."""
    import ckdl

    lines = text.splitlines(keepends=True)
    good, bad = 0, len(lines)
    while good + 1 < bad:
        middle = (good + bad) // 2
        try:
            ckdl.parse("".join(lines[:middle]) + "}" * _open_blocks("".join(lines[:middle])))
            good = middle
        except ckdl.ParseError:
            bad = middle
    line = lines[bad - 1] if lines else ""
    return Place(max(bad, 1), len(line) - len(line.lstrip()) + 1)


def _open_blocks(text: str) -> int:
    depth = 0
    for match in _TOKENS.finditer(text):
        depth += 1 if match["open"] else -1 if match["close"] else 0
    return max(depth, 0)


class _Value(NamedTuple):
    scalar: Scalar
    is_word: bool  # not quoted


class _Composer:
    """Makes nodes of a text that is known to be valid."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._position = Lines(text).position

    def nodes(self, depth: int) -> list[KdlNode]:
        """The nodes up to the end of the block, or of the text."""
        if depth > DEEPEST:
            raise too_deep(place_of(self._position(self._at)))
        nodes: list[KdlNode] = []
        while True:
            self._skip(newlines=True)
            if self._at >= len(self._text) or self._text[self._at] == "}":
                return nodes
            is_out = self._commented_out()
            node = self._node(depth)
            if not is_out:
                nodes.append(node)

    def _node(self, depth: int) -> KdlNode:
        self._type_annotation()
        name = self._value().scalar
        entries: list[Entry] = []
        children: list[KdlNode] | None = None
        end, block = name.end, None
        while True:
            self._skip()
            if self._at >= len(self._text) or self._text[self._at] == "}" or _NEWLINE.match(self._text, self._at):
                break
            is_out = self._commented_out()
            if self._text[self._at] == "{":
                start = self._position(self._at)
                self._at += 1
                inner = self.nodes(depth + 1)
                self._at += 1  # the closing brace
                if not is_out:
                    children, block = inner, start
            else:
                entry = self._entry()
                if not is_out:
                    entries.append(entry)
            if not is_out:
                end = self._position(self._at)
        return KdlNode(name, entries, children, end, block)

    def _entry(self) -> Entry:
        """An argument, or `key=value`."""
        self._type_annotation()
        value, is_word = self._value()
        if self._at < len(self._text) and self._text[self._at] == "=":
            self._at += 1
            self._type_annotation()
            return Entry(value, self._argument())
        return Entry(None, _meant(value, is_word))

    def _argument(self) -> Scalar:
        return _meant(*self._value())

    def _value(self) -> _Value:
        start = self._position(self._at)
        match = _STRING.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            return _Value(Scalar(_decoded(match[0]), start, self._position(self._at), '"'), False)
        word = _WORD.match(self._text, self._at)
        if word is None:  # the library accepts some texts that are not KDL
            raise Problem(
                "this is not KDL: a value is missing, or has a character that needs quotes", place=place_of(start)
            )
        self._at = word.end()
        return _Value(Scalar(word[0], start, self._position(self._at), ""), True)

    def _type_annotation(self) -> None:
        if self._text.startswith("(", self._at):
            self._at = self._text.index(")", self._at) + 1
            self._skip()

    def _commented_out(self) -> bool:
        """Skip `/-`, which comments out what follows; return whether there is one."""
        is_out = False
        while self._text.startswith("/-", self._at):
            is_out = True
            self._at += 2
            self._skip(newlines=True)
        return is_out

    def _skip(self, *, newlines: bool = False) -> None:
        while True:
            match = _BLANK.match(self._text, self._at)
            if match is None and (newlines or self._text.startswith("//", self._at)):
                match = _COMMENT.match(self._text, self._at)
                if match is None and newlines:
                    match = _NEWLINE.match(self._text, self._at)
            if match is not None:
                self._at = match.end()
            elif self._text.startswith("/*", self._at):
                self._skip_block_comment()
            else:
                return

    def _skip_block_comment(self) -> None:
        """Skip a block comment, which may contain others."""
        depth = 0
        for match in re.compile(r"/\*|\*/").finditer(self._text, self._at):
            depth += 1 if match[0] == "/*" else -1
            if depth == 0:
                self._at = match.end()
                return


def _meant(scalar: Scalar, is_word: bool) -> Scalar:
    if is_word:
        scalar.value = _plain(scalar.value)
    return scalar


def _plain(word: str) -> str:
    """A number or a keyword as the other formats write it."""
    if word in _KEYWORDS:
        return _KEYWORDS[word]
    if based := _BASED.fullmatch(word):
        return based[1].replace("+", "") + str(int(based[2].replace("_", ""), 0))
    return word.replace("_", "").removeprefix("+") if _NUMBER.fullmatch(word) else word


def _decoded(token: str) -> str:
    if token[0] == '"' and "\\" not in token and not token.startswith('"""'):
        return token[1:-1]
    import ckdl

    return str(ckdl.parse(f"node {token}\n").nodes[0].args[0])
