"""Reading JSON and JSON5: as nodes, like YAML, so that positions and rewriting are the same for all.

A library checks whether the text is valid; the nodes are then made of the tokens of the text, because no library
reports where each value stands.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from jobmeter.workflow.spec.read.nodes import Lines, Mapping, Node, Scalar, Sequence, TextPosition
from jobmeter.workflow.spec.read.spec_errors import DEEPEST, Place, Problem, place_of, too_deep

_JSON_TOKEN = re.compile(r'[ \t\r\n]*([{}\[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+)')
_JSON5_TOKEN = re.compile(
    r"(?:[\s\ufeff]|//[^\r\n\u2028\u2029]*|/\*.*?\*/)*"
    r"""([{}\[\],:]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s\ufeff{}\[\],:"'/]+)""",
    re.DOTALL,
)
_NEAR = re.compile(r" ?(?:starting )?near (\d+)")
_CHARACTER = re.compile(r"U\+([0-9a-fA-F]{4,6})")


def compose_json(text: str) -> Node:
    """The document in `text`. Raises Problem if it is not JSON."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise Problem(f"this is not JSON: {error.msg}", place=Place(error.lineno, error.colno)) from None
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:  # a number of thousands of digits
        raise Problem(f"this is not JSON: {error}") from None
    return _Composer(text, _JSON_TOKEN).node(1)


def _refuse_constant(name: str) -> NoReturn:
    raise Problem(f"this is not JSON: {name}")


def compose_json5(text: str) -> Node | None:
    """The document in `text`; None if it has only comments. Raises Problem if it is not JSON5."""
    import pyjson5

    if _JSON5_TOKEN.match(text) is None and not text.strip("\ufeff \t\r\n/"):
        return None
    try:
        pyjson5.decode(text, DEEPEST + 1)
    except pyjson5.Json5NestingTooDeep:
        raise too_deep() from None
    except pyjson5.Json5EOF as error:
        if "No JSON data" in str(error.args[0]):
            return None
        raise _json5_problem(text, str(error.args[0])) from None
    except pyjson5.Json5Exception as error:
        raise _json5_problem(text, str(error.args[0])) from None
    except ValueError as error:  # a number of thousands of digits
        raise Problem(f"this is not JSON5: {error}") from None
    return _Composer(text, _JSON5_TOKEN).node(1)


def _json5_problem(text: str, message: str) -> Problem:
    """The error of the library, at the place that it names; it counts characters from 1."""
    near = _NEAR.search(message)
    place = None
    if near is not None:
        place = place_of(Lines(text).position(min(max(int(near[1]) - 1, 0), len(text))))
        message = message[: near.start()] + message[near.end() :]
    words = _CHARACTER.sub(lambda match: repr(chr(int(match[1], 16))), re.sub(r"b'(\w+)'", r"\1", message))
    return Problem(f"this is not JSON5: {words}", place=place)


class _Composer:
    """Makes nodes of a text that is known to be valid."""

    def __init__(self, text: str, token: re.Pattern[str]) -> None:
        self._text = text
        self._match = token.match
        self._at = 0
        self._position = Lines(text).position

    def node(self, depth: int) -> Node:
        token, index = self._token()
        start = self._position(index)
        if depth > DEEPEST:
            raise too_deep(place_of(start))
        if token == "{":
            return self._mapping(start, depth)
        if token == "[":
            return self._sequence(start, depth)
        return self._scalar(token, start)

    def _mapping(self, start: TextPosition, depth: int) -> Mapping:
        mapping = Mapping(start, flow=True)
        token, index = self._token()
        while token != "}":
            if token != ",":
                key = self._scalar(token, self._position(index))
                self._token()  # the colon
                mapping.pairs.append((key, self.node(depth + 1)))
                mapping.ends.append(self._position(self._at))
            token, index = self._token()
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
        quote = token[0] if token[0] in "\"'" else ""
        value = _unquoted(token) if quote else _plain(token)
        return Scalar(value, start, self._position(self._at), quote)

    def _token(self) -> tuple[str, int]:
        """The next token, and the index at which it begins."""
        match = self._match(self._text, self._at)
        assert match is not None, "the library let it pass"
        self._at = match.end()
        return match[1], match.start(1)


def _unquoted(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    if token[0] == '"':
        try:
            return str(json.loads(token))
        except ValueError:
            pass  # an escape that only JSON5 has
    import pyjson5

    return str(pyjson5.decode(token))


def _plain(token: str) -> str:
    """A number of JSON5 as the other formats write it: `+1`, `.5`, `0x10`."""
    sign = "-" if token[0] == "-" else ""
    digits = token.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return f"{sign}{int(digits, 16)}"
    if digits[:1] == ".":
        return f"{sign}0{digits}"
    return f"{sign}{digits.removesuffix('.')}" if digits[:1].isdigit() else token
