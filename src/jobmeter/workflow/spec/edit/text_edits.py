"""Changing a text at the positions of its nodes, and nowhere else, in all formats."""

from __future__ import annotations

import re
from collections.abc import Mapping as Map
from typing import NamedTuple

from jobmeter.workflow.spec.read.nodes import Mapping, Scalar

_PREFIX = re.compile(r"(?:[&!]\S*\s+)*")  # an anchor, a tag
_STEP = "  "  # of indentation


class Notation(NamedTuple):
    """How a format writes pairs of keys and values."""

    between: str  # between key and value
    separator: str = ", "  # between the pairs in braces
    padding: str = ""  # within the braces
    quotes_keys: bool = False
    quotes_texts: bool = True
    has_blocks: bool = False  # a mapping may be written as indented lines

    def pair(self, key: str, value: str) -> str:
        return f"{key}{self.between}{value}"

    def braces(self, pairs: Map[str, str]) -> str:
        """A mapping on one line."""
        quote = '"' if self.quotes_keys else ""
        inner = self.separator.join(self.pair(_quoted(key, quote), value) for key, value in pairs.items())
        return f"{{{self.padding}{inner}{self.padding}}}"


NOTATIONS = {
    "YAML": Notation(": ", quotes_texts=False, has_blocks=True),
    "JSON": Notation(": ", quotes_keys=True),
    "JSON5": Notation(": "),
    "TOML": Notation(" = "),
    "KDL": Notation(" ", separator="; ", padding=" "),
}


def edits_of(text: str, kind: str) -> Edits:
    """An object that collects changes to a text of the format `kind`."""
    return KdlEdits(text, NOTATIONS[kind]) if kind == "KDL" else Edits(text, NOTATIONS[kind])


class Edits:
    """Collects changes to a text and makes them all at once, so that positions stay valid."""

    def __init__(self, text: str, notation: Notation) -> None:
        self._text = text
        self._notation = notation
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._changes: list[tuple[int, int, str]] = []

    def result(self) -> str:
        text = self._text
        for start, end, new in sorted(self._changes, key=lambda change: change[0], reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def replace(self, scalar: Scalar, value: str) -> None:
        """Replace the value of a scalar; its quotes and its anchor stay."""
        start, end = scalar.start.index, scalar.end.index
        old = self._text[start:end]
        prefix = _PREFIX.match(old)
        assert prefix is not None, "it matches nothing too"
        if scalar.style in ("|", ">"):  # a block: the line break after it is part of it
            ending = old[len(old.rstrip()) :]
            self._change(start + prefix.end(), end, value + ending)
        else:
            self._change(start + prefix.end(), end, _quoted(value, scalar.style))

    def fill(self, key: Scalar, value: str) -> None:
        """Write a value for a key that has no value, or `null`."""
        mark = self._notation.between.strip()
        colon = self._text.index(mark, key.end.index) + len(mark)
        nothing = re.compile(r"[ \t]*(?:~|null|Null|NULL)(?=[\s,}]|$)").match(self._text, colon)
        self._change(colon, nothing.end() if nothing is not None else colon, f" {value}")

    def insert(self, mapping: Mapping, pairs: Map[str, str]) -> None:
        """Add keys with their values, after the existing ones. A value of several lines begins with a line break."""
        if mapping.flow:
            self._insert_in_braces(mapping, pairs)
        else:
            self._insert_lines(mapping, pairs)

    def _insert_in_braces(self, mapping: Mapping, pairs: Map[str, str]) -> None:
        quote = self._key_quote(mapping)
        written = [self._notation.pair(_quoted(key, quote), value) for key, value in pairs.items()]
        last = self._last_end(mapping)
        if last is None:  # it has no keys, or its last key has no value
            brace = self._text.index("{", mapping.start.index) + 1
            self._change(brace, brace, ", ".join(written) + (", " if mapping.pairs else ""))
            return
        separator = ", "
        key = mapping.pairs[-1][0]
        line_end = re.compile(r"[ \t]*,?[ \t]*\r?\n").match(self._text, last)
        if key.start.line != mapping.start.line and line_end is not None:
            separator = f",{self.newline}{self._indentation(key.start.index)}"
        self._change(last, last, "".join(separator + pair for pair in written))

    def _insert_lines(self, mapping: Mapping, pairs: Map[str, str]) -> None:
        if not mapping.pairs:  # only the header of a table
            at = self._line_end(mapping.start.index)
            lines = [self._notation.pair(key, value) for key, value in pairs.items()]
            self._change(at, at, "".join(f"{self.newline}{line}" for line in lines))
            return
        first = mapping.pairs[0][0]
        indentation = " " * (first.start.index - self._line_start(first.start.index))
        quote = self._key_quote(mapping)
        lines = [_quoted(key, quote) + self._after_key(value) for key, value in pairs.items()]
        for (key, value), end in reversed(list(zip(mapping.pairs, mapping.ends))):
            is_empty = isinstance(value, Scalar) and value.is_nothing
            if key.start.line == end.line and not is_empty:
                at = self._line_end(end.index)
                self._change(at, at, "".join(f"{self.newline}{indentation}{line}" for line in lines))
                return
        # Every value is empty or has several lines: before the first key, nothing can be broken.
        at = first.start.index
        self._change(at, at, "".join(f"{line}{self.newline}{indentation}" for line in lines))

    def _after_key(self, value: str) -> str:
        return f":{value}" if value.startswith(self.newline) else f"{self._notation.between}{value}"

    def indentation_within(self, mapping: Mapping) -> str:
        """The indentation of the lines of a mapping that is a value in this one."""
        first = mapping.pairs[0][0].start.index
        return " " * (first - self._line_start(first)) + _STEP

    def _last_end(self, mapping: Mapping) -> int | None:
        if not mapping.pairs:
            return None
        value, end = mapping.pairs[-1][1], mapping.ends[-1]
        return None if isinstance(value, Scalar) and not value.style and not value.value else end.index

    def _key_quote(self, mapping: Mapping) -> str:
        if self._notation.quotes_keys:
            return '"'
        styles = {key.style for key, _ in mapping.pairs if isinstance(key, Scalar)}
        return styles.pop() if len(styles) == 1 else ""

    def _line_start(self, index: int) -> int:
        return self._text.rfind("\n", 0, index) + 1

    def _line_end(self, index: int) -> int:
        end = self._text.find("\n", index)
        if end < 0:
            return len(self._text)
        return end - 1 if self._text[end - 1] == "\r" else end

    def _indentation(self, index: int) -> str:
        """The white space at the beginning of the line."""
        match = re.compile(r"[ \t]*").match(self._text, self._line_start(index))
        return match[0] if match is not None else ""

    def _change(self, start: int, end: int, new: str) -> None:
        self._changes.append((start, end, new))


class KdlEdits(Edits):
    """Edits for KDL, whose nodes have a block of children or stand on one line."""

    def fill(self, key: Scalar, value: str) -> None:
        at = key.end.index
        nothing = re.compile(r"[ \t]+#?null\b").match(self._text, at)
        self._change(at, nothing.end() if nothing is not None else at, f" {value}")

    def insert(self, mapping: Mapping, pairs: Map[str, str]) -> None:
        end = mapping.end.index
        nodes = [self._notation.pair(key, value) for key, value in pairs.items()]
        if self._text[end - 1 : end] != "}":
            self._change(end, end, f" {self._notation.braces(pairs)}")
            return
        brace = end - 1
        line = self._line_start(brace)
        if self._text[line:brace].strip():  # the closing brace is not alone on its line
            inner = self._text[:brace].rstrip()
            start = " " if inner[-1] in "{;" else "; "
            self._change(len(inner), brace, start + "; ".join(nodes) + " ")
            return
        inner_lines = [key.start for key, _ in mapping.pairs if key.start.line > mapping.start.line]
        indentation = self._indentation(inner_lines[0].index if inner_lines else brace)
        indentation += "" if inner_lines else 2 * _STEP
        self._change(line, line, "".join(f"{indentation}{node}{self.newline}" for node in nodes))


def _quoted(value: str, style: str) -> str:
    return f"{style}{value}{style}" if style in ("'", '"') else value
