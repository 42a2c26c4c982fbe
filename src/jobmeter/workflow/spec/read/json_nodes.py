"""Reading JSON: as nodes, like YAML, so that places and rewriting are the same for both."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import NoReturn

from jobmeter.workflow.spec.read.nodes import Mapping, Node, Scalar, Sequence, TextPosition
from jobmeter.workflow.spec.read.spec_errors import DEEPEST, Problem, too_deep

_TOKEN = re.compile(r'[ \t\r\n]*([{}\[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+)')


def compose_json(text: str) -> Node:
    """The document in `text`. Problem when it is no JSON."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise Problem(f"this is not JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:  # a number of thousands of digits
        raise Problem(f"this is not JSON: {error}") from None
    return _JsonComposer(text).node(1)


def _refuse_constant(name: str) -> NoReturn:
    raise Problem(f"this is not JSON: {name}")


class _JsonComposer:
    """Makes nodes of a text that is known to be JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines = [match.end() for match in re.finditer("\n", text)]

    def node(self, depth: int) -> Node:
        token, start = self._token()
        if depth > DEEPEST:
            raise too_deep(start.line + 1)
        if token == "{":
            return self._mapping(start, depth)
        if token == "[":
            return self._sequence(start, depth)
        return self._scalar(token, start)

    def _mapping(self, start: TextPosition, depth: int) -> Mapping:
        mapping = Mapping(start, flow=True)
        token, key_start = self._token()
        while token != "}":
            if token != ",":
                key = self._scalar(token, key_start)
                self._token()  # the colon
                mapping.pairs.append((key, self.node(depth + 1)))
                mapping.ends.append(self._position(self._at))
            token, key_start = self._token()
        mapping.end = self._position(self._at)
        return mapping

    def _sequence(self, start: TextPosition, depth: int) -> Sequence:
        sequence = Sequence(start, flow=True)
        before = self._at
        token, _ = self._token()
        while token != "]":
            if token != ",":
                self._at = before
                sequence.items.append(self.node(depth + 1))
            before = self._at
            token, _ = self._token()
            if token == ",":
                before = self._at
        sequence.end = self._position(self._at)
        return sequence

    def _scalar(self, token: str, start: TextPosition) -> Scalar:
        quoted = token.startswith('"')
        value = json.loads(token) if quoted else token
        return Scalar(value, start, self._position(self._at), '"' if quoted else "")

    def _token(self) -> tuple[str, TextPosition]:
        match = _TOKEN.match(self._text, self._at)
        assert match is not None, "json.loads let it pass"
        self._at = match.end()
        return match[1], self._position(match.start(1))

    def _position(self, index: int) -> TextPosition:
        return TextPosition(index, bisect_right(self._lines, index))
