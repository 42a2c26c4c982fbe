"""The small language of `--where`, compiled to an SQL condition with bound parameters.

    memory_peak_bytes > 4GiB and (status = "oom" or not name ~ "test*") and labels.team = "a" and metrics.loss < 0.2

Comparisons are `= != < <= > >=` and `~`, which matches a glob. Numbers may have a unit: bytes
(`512m`, `4GiB`) where the field is of bytes, time (`90s`, `1h30m`) where it is of seconds.
Fields are those of `ls --fields`; a comparison with a figure that was not measured is not true.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

from sqlalchemy import ColumnElement, Float, and_, func, literal, not_, or_

from jobmeter.byte_text import as_represented
from jobmeter.errors import UsageError
from jobmeter.store.index.tables import ByteText, job_metadata
from jobmeter.store.query.fields import Field, check_field
from jobmeter.terminal import printable
from jobmeter.units import parse_bytes, parse_seconds

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<number>-?(?:\d+(?:\.\d*)?|\.\d+)[A-Za-z0-9.]*)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_./-]+)?)
    | (?P<sign><=|>=|!=|==|[=<>~()])
    )""",
    re.VERBOSE,
)
_MOST_COMPARISONS = 500
"""SQLite refuses expressions that are about 1000 deep, and each `and` is one deeper."""
_MOST_DEPTH = 100
_COMPARISONS = ("=", "==", "!=", "<", "<=", ">", ">=", "~")


class _Token(NamedTuple):
    kind: str  # string, number, word, sign, end
    text: str
    position: int


class _Subject(NamedTuple):
    """The left side of a comparison."""

    column: ColumnElement[Any]
    unit: str


def compile_expression(text: str) -> ColumnElement[bool]:
    """The condition that `text` expresses. Raises UsageError, with a caret under the position, if it is not valid."""
    return _Parser(text).parse()


def label_column(key: str) -> ColumnElement[str]:
    """The value of a label, as SQL."""
    extracted: ColumnElement[str] = func.json_extract(job_metadata.c.labels, _json_path(key), type_=ByteText)
    return extracted


def _metric_column(name: str) -> ColumnElement[float]:
    """The last value of a metric, as SQL."""
    extracted: ColumnElement[float] = func.json_extract(job_metadata.c.metrics, _json_path(name), type_=Float)
    return extracted


def _json_path(key: str) -> ColumnElement[str]:
    quoted = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return literal(f"$.{as_represented(quoted)}")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._at = 0
        self._depth = 0
        self._comparisons = 0

    def parse(self) -> ColumnElement[bool]:
        condition = self._either()
        if self._now.kind != "end":
            self._fail(f"{self._now.text!r} is not expected here; write `and` or `or` between comparisons")
        return condition

    def _split(self) -> list[_Token]:
        tokens, at = [], 0
        end = len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                position = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                letter = self._text[position]
                message = (
                    "the text that begins here has no end" if letter in "\"'" else f"{letter!r} has no meaning here"
                )
                self._fail(message, position)
            kind = str(match.lastgroup)
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            at = match.end()
        return [*tokens, _Token("end", "the end", end)]

    @property
    def _now(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._now
        self._at += token.kind != "end"
        return token

    def _is_word(self, *words: str) -> bool:
        return self._now.kind == "word" and self._now.text.lower() in words

    def _either(self) -> ColumnElement[bool]:
        parts = [self._both()]
        while self._is_word("or"):
            self._next()
            parts.append(self._both())
        return or_(*parts)

    def _both(self) -> ColumnElement[bool]:
        parts = [self._one()]
        while self._is_word("and"):
            self._next()
            parts.append(self._one())
        return and_(*parts)

    def _one(self) -> ColumnElement[bool]:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            self._fail("too many nested parentheses")
        try:
            if self._is_word("not"):
                self._next()
                # A run without the figure matches neither the comparison nor its opposite.
                return not_(self._one())
            if self._now.text == "(" and self._now.kind == "sign":
                opened = self._next()
                inner = self._either()
                if self._now.text != ")" or self._now.kind != "sign":
                    self._fail("this ( is never closed" if self._now.kind == "end" else "a ) is missing here",
                               opened.position if self._now.kind == "end" else None)  # fmt: skip
                self._next()
                return inner.self_group()
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> ColumnElement[bool]:
        self._comparisons += 1
        if self._comparisons > _MOST_COMPARISONS:
            raise UsageError(f"--where: more than {_MOST_COMPARISONS} comparisons")
        subject = self._subject()
        operator = self._now
        if operator.kind != "sign" or operator.text not in _COMPARISONS:
            self._fail(f"a comparison is missing here: {' '.join(_COMPARISONS[2:])} or =")
        self._next()
        if operator.text == "~":
            pattern = self._next()
            if pattern.kind != "string":
                self._fail('~ compares with a pattern in quotes, as "train*"', pattern.position)
            return subject.column.op("GLOB", is_comparison=True)(_unquote(pattern.text))
        value = self._value(subject.unit)
        column = subject.column
        return {
            "=": column == value,
            "==": column == value,
            "!=": column != value,
            "<": column < value,
            "<=": column <= value,
            ">": column > value,
            ">=": column >= value,
        }[operator.text]

    def _subject(self) -> _Subject:
        token = self._next()
        if token.kind != "word" or token.text.lower() in ("and", "or", "not"):
            message = "a field is missing here" if token.kind != "string" else "write a field on the left, not a text"
            self._fail(f"{message}, as memory_peak_bytes, status or labels.KEY", token.position)
        name, _, key = token.text.partition(".")
        if key:
            if name == "metrics":
                return _Subject(_metric_column(key), "number")
            if name != "labels":
                self._fail("only labels and metrics have parts, as labels.team", token.position)
            return _Subject(label_column(key), "text")
        try:
            field: Field = check_field(name)
        except UsageError as error:
            self._fail(str(error), token.position)
        return _Subject(job_metadata.c[field.column], field.unit)

    def _value(self, unit: str) -> str | float:
        token = self._next()
        textual = unit in ("text", "time", "json")
        if token.kind == "string" or (token.kind == "word" and textual and token.text.lower() not in ("and", "or")):
            if not textual:
                self._fail(f"this field is a number ({unit}); write it without quotes", token.position)
            return _unquote(token.text) if token.kind == "string" else token.text
        if token.kind != "number":
            self._fail("a value is missing here: a number, or a text in quotes", token.position)
        if textual:
            return token.text
        try:
            return _number(token.text, unit)
        except (UsageError, ValueError) as error:
            message = str(error) if isinstance(error, UsageError) else f"{token.text!r} is not a number"
            self._fail(message, token.position)

    def _fail(self, message: str, position: int | None = None) -> NoReturn:
        at = self._now.position if position is None else position
        # The text is escaped when it is printed, which may make the part before the position longer.
        raise UsageError(f"--where: {message}", f"  {self._text}", f"  {' ' * len(printable(self._text[:at]))}^")


def _number(text: str, unit: str) -> float:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    if unit == "bytes":
        return sign * parse_bytes(digits)
    if unit == "seconds":
        return sign * parse_seconds(digits)
    return sign * float(digits)


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
