"""Writing the nodes of a spec as YAML, JSON, JSON5, TOML or KDL, with their comments where the format has any."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from jobmeter.workflow.spec.convert.comments import Comments
from jobmeter.workflow.spec.read.kdl_shape import ITEM, SINGULAR
from jobmeter.workflow.spec.read.nodes import Mapping, Node, Scalar, Sequence, json_value, merged

_PLAIN_YAML = re.compile(r"(?!\.?\d)[A-Za-z_./][\w./@+-]*(?: [\w./@+-]+)*")
_WORDS_OF_YAML = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "~", ".", ".."])
_SIZE = re.compile(r"\d+[kmgtKMGT]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
_BARE_TOML = re.compile(r"[A-Za-z0-9_-]+")
_BARE_KDL = re.compile(r"[A-Za-z_][\w.-]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WIDE = 100
"""A list with fewer characters is written on one line."""


def write_nodes(kind: str, root: Mapping, comments: Comments) -> str:
    """The text of a spec in the format `kind`. TOML has no null: such a value is left out."""
    lines = _WRITERS[kind](root, comments)
    return "\n".join([*lines, *_commented(_MARKS[kind], comments.rest())]) + "\n"


_MARKS = {"YAML": "#", "TOML": "#", "JSON5": "//", "KDL": "//", "JSON": ""}


def _commented(mark: str, lines: list[str], indentation: str = "") -> list[str]:
    return [f"{indentation}{mark} {line}".rstrip() for line in lines] if mark else []


def _beside(mark: str, text: str) -> str:
    return f"  {mark} {text}" if mark and text else ""


def _around(item: Node, comments: Comments) -> list[str]:
    """The comments of an item of a list, for the lines above it; a comment beside its first key stays there."""
    lines = comments.before(_start(item))
    is_own = not (isinstance(item, Mapping) and item.pairs and _start(item.pairs[0][0]) == _start(item))
    return [*lines, *filter(None, [comments.beside(_start(item))] if is_own else [])]


def _start(node: Node) -> int:
    return node.start.index


def is_nothing(node: Node) -> bool:
    return isinstance(node, Scalar) and node.is_nothing


def _literal(scalar: Scalar, truths: tuple[str, str] = ("true", "false"), nothing: str = "null") -> str | None:
    """A scalar that every format writes without quotes: a number, a truth value or null. None if it is a text."""
    if scalar.style:
        return None
    value = json_value(scalar)
    if value is None:
        return nothing
    if isinstance(value, bool):
        return truths[0] if value else truths[1]
    return scalar.value if _NUMBER.fullmatch(scalar.value) else None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# YAML


def _yaml(root: Mapping, comments: Comments) -> list[str]:
    return _yaml_mapping(root, comments, "")


def _yaml_mapping(mapping: Mapping, comments: Comments, indentation: str) -> list[str]:
    lines: list[str] = []
    for name, key, value in merged(mapping):
        lines += _commented("#", comments.before(_start(key)), indentation)
        beside = _beside("#", comments.beside(_start(key)))
        head = f"{indentation}{_yaml_text(name)}:"
        if isinstance(value, Scalar):
            lines += _yaml_scalar(head, value, beside, indentation)
        elif _is_short(value):
            lines += _commented("#", comments.within(value), indentation)
            lines.append(f"{head} {_yaml_flow(value)}{beside}")
        elif isinstance(value, Sequence):
            lines.append(f"{head}{beside}")
            lines += _yaml_sequence(value, comments, f"{indentation}  ")
        else:
            lines.append(f"{head}{beside}")
            lines += _yaml_mapping(value, comments, f"{indentation}  ")
    return lines


def _yaml_sequence(sequence: Sequence, comments: Comments, indentation: str) -> list[str]:
    lines: list[str] = []
    for item in sequence.items:
        lines += _commented("#", comments.before(_start(item)), indentation)
        if isinstance(item, Mapping) and item.pairs:
            # The comments of the item, and those before its first key, go above the dash.
            lines += _commented("#", _around(item, comments), indentation)
            lines += _commented("#", comments.before(_start(item.pairs[0][0])), indentation)
            inner = _yaml_mapping(item, comments, f"{indentation}  ")
            inner[0] = f"{indentation}- {inner[0].lstrip()}"
            lines += inner
        elif isinstance(item, Scalar):
            beside = _beside("#", comments.beside(_start(item)))
            lines += _yaml_scalar(f"{indentation}-", item, beside, indentation)
        else:
            lines += _commented("#", comments.within(item), indentation)
            lines.append(f"{indentation}- {_yaml_flow(item)}")
    return lines


def _yaml_scalar(head: str, scalar: Scalar, beside: str, indentation: str) -> list[str]:
    text = scalar.value
    if "\n" in text and scalar.style and _fits_block(text):
        keep = "|" if text.endswith("\n") else "|-"
        return [
            f"{head} {keep}{beside}",
            *(f"{indentation}  {line}".rstrip() for line in text.rstrip("\n").split("\n")),
        ]
    literal = _literal(scalar)
    return [f"{head} {_yaml_text(text) if literal is None else literal}{beside}"]


def _fits_block(text: str) -> bool:
    """Whether a block of lines can hold exactly this text: no control characters, no spaces that would be lost."""
    lines = text.removesuffix("\n").split("\n")
    return (
        bool(lines[0])
        and not lines[0][0].isspace()
        and all(line == line.rstrip() and line.isprintable() for line in lines)
        and bool(lines[-1])
    )


def _yaml_text(text: str) -> str:
    if _SIZE.fullmatch(text) or (_PLAIN_YAML.fullmatch(text) and text.lower() not in _WORDS_OF_YAML):
        return text
    return f"'{text}'" if '"' in text and "'" not in text and text.isprintable() else _quoted(text)


def _yaml_flow(node: Node) -> str:
    if isinstance(node, Sequence):
        return "[" + ", ".join(map(_yaml_flow, node.items)) + "]"
    if isinstance(node, Mapping):
        return "{" + ", ".join(f"{_yaml_text(name)}: {_yaml_flow(value)}" for name, _, value in merged(node)) + "}"
    literal = _literal(node)
    return _yaml_text(node.value) if literal is None else literal


def _is_short(node: Node) -> bool:
    """Whether a value is written on one line: an empty mapping, or a short list of scalars without line breaks."""
    if isinstance(node, Mapping):
        return not node.pairs
    if not isinstance(node, Sequence):
        return False
    return all(isinstance(item, Scalar) and "\n" not in item.value for item in node.items) and (
        sum(len(item.value) + 4 for item in node.items if isinstance(item, Scalar)) < _WIDE
    )


# JSON and JSON5


def _json(root: Mapping, comments: Comments) -> list[str]:
    return json.dumps(json_value(root), indent=2, ensure_ascii=False).splitlines()


def _json5(root: Mapping, comments: Comments) -> list[str]:
    above = _commented("//", comments.before(_start(root.pairs[0][0])) if root.pairs else [])
    return [*above, *_json5_value(root, comments, "")]


def _json5_value(node: Node, comments: Comments, indentation: str) -> list[str]:
    """The lines of a value; the first has no indentation."""
    if isinstance(node, Scalar):
        literal = _literal(node)
        return [_quoted(node.value) if literal is None else literal]
    if isinstance(node, Sequence) and _is_short(node):
        return ["[" + ", ".join(_json5_value(item, comments, "")[0] for item in node.items) + "]"]
    entries: list[tuple[str, int, Node]]
    if isinstance(node, Mapping):
        entries = [(f"{_json5_key(name)}: ", _start(key), value) for name, key, value in merged(node)]
        brackets = "{}"
    else:
        entries = [("", _start(item), item) for item in node.items]
        brackets = "[]"
    if not entries:
        return [brackets]
    lines = [brackets[0]]
    for head, start, value in entries:
        inner = f"{indentation}  "
        lines += _commented("//", comments.before(start), inner)
        beside = _beside("//", comments.beside(start))
        if _is_short(value):
            lines += _commented("//", comments.within(value), inner)
        written = _json5_value(value, comments, inner)
        written[-1] += ","
        # If the value has several lines, the comment beside it goes behind the first one.
        written[0] += beside
        lines += [f"{inner}{head}{written[0]}", *written[1:]]
    return [*lines, f"{indentation}{brackets[1]}"]


def _json5_key(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else _quoted(name)


# TOML


def _toml(root: Mapping, comments: Comments) -> list[str]:
    lines = _toml_table(root, comments, [])
    return lines[1:] if lines[:1] == [""] else lines


def _toml_table(table: Mapping, comments: Comments, path: list[str]) -> list[str]:
    """The keys of a table, and after them the tables below it."""
    lines: list[str] = []
    tables: list[str] = []
    for name, key, value in merged(table):
        if is_nothing(value):
            continue
        above = _commented("#", comments.before(_start(key)))
        beside = _beside("#", comments.beside(_start(key)))
        inner = [*path, _toml_key(name)]
        if isinstance(value, Mapping) and not path:
            tables += ["", *above, f"[{'.'.join(inner)}]{beside}", *_toml_table(value, comments, inner)]
        elif isinstance(value, Sequence) and value.items and all(isinstance(item, Mapping) for item in value.items):
            for item in value.items:
                assert isinstance(item, Mapping)
                above += _commented("#", _around(item, comments))
                tables += ["", *above, f"[[{'.'.join(inner)}]]{beside}", *_toml_table(item, comments, inner)]
                above, beside = [], ""
        else:
            inside = _commented("#", comments.within(value))
            lines += [*above, *inside, f"{_toml_key(name)} = {_toml_value(value)}{beside}"]
    return [*lines, *tables]


def _toml_value(node: Node) -> str:
    if isinstance(node, Sequence):
        return "[" + ", ".join(_toml_value(item) for item in node.items) + "]"
    if isinstance(node, Mapping):
        pairs = [
            f"{_toml_key(name)} = {_toml_value(value)}" for name, _, value in merged(node) if not is_nothing(value)
        ]
        return "{" + ", ".join(pairs) + "}"
    literal = _literal(node, nothing='""')
    return _quoted(node.value) if literal is None else literal


def _toml_key(name: str) -> str:
    return name if _BARE_TOML.fullmatch(name) else _quoted(name)


# KDL


def _kdl(root: Mapping, comments: Comments) -> list[str]:
    return _kdl_mapping(root, comments, "", SINGULAR)


def _kdl_mapping(mapping: Mapping, comments: Comments, indentation: str, singular: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for name, key, value in merged(mapping):
        above = _commented("//", comments.before(_start(key)), indentation)
        beside = _beside("//", comments.beside(_start(key)))
        if name in singular and isinstance(value, Sequence):
            for item in value.items:
                above += _commented("//", _around(item, comments), indentation)
                lines += [*above, *_kdl_entity(singular[name], item, beside, comments, indentation)]
                above, beside = [], ""
        else:
            if isinstance(value, Sequence):
                above += _commented("//", comments.within(value), indentation)
            lines += [*above, *_kdl_field(name, value, beside, comments, indentation)]
    return lines


def _kdl_entity(node: str, item: Node, beside: str, comments: Comments, indentation: str) -> list[str]:
    """`job "train" { … }`."""
    if not isinstance(item, Mapping):
        return _kdl_field(node, item, beside, comments, indentation)
    head, rest = f"{indentation}{node}", Mapping(item.start, flow=True)
    for name, key, value in merged(item):
        if name == "name" and isinstance(value, Scalar) and not is_nothing(value):
            head += f" {_quoted(value.value)}"
            beside = beside or _beside("//", comments.beside(_start(key)))
            above = _commented("//", comments.before(_start(key)), indentation)
            head = "\n".join([*above, head])
        else:
            rest.pairs.append((key, value))
    inner = {"rules": "rule"} if node == "failure_handler" else {}
    children = _kdl_mapping(rest, comments, f"{indentation}    ", inner)
    if not children:
        return [f"{head}{beside}"]
    return [f"{head} {{{beside}", *children, f"{indentation}}}"]


def _kdl_field(name: str, value: Node, beside: str, comments: Comments, indentation: str) -> list[str]:
    head = f"{indentation}{name if _BARE_KDL.fullmatch(name) else _quoted(name)}"
    if name in ("data", "metadata") and not isinstance(value, Scalar):
        return [f"{head} {_quoted(json.dumps(json_value(value), ensure_ascii=False))}{beside}"]
    if isinstance(value, Scalar):
        return [f"{head} {_kdl_scalar(value)}{beside}"]
    if isinstance(value, Mapping):
        children = _kdl_mapping(value, comments, f"{indentation}    ", {})
        return [f"{head} {{{beside}", *children, f"{indentation}}}"]
    scalars = [item for item in value.items if isinstance(item, Scalar)]
    if not value.items:
        return []
    if len(scalars) == len(value.items) and (len(scalars) > 1 or name != "command"):
        return [f"{head} {' '.join(map(_kdl_scalar, scalars))}{beside}"]
    items = [_kdl_field(ITEM, item, "", comments, f"{indentation}    ") for item in value.items]
    return [f"{head} {{{beside}", *(line for item in items for line in item), f"{indentation}}}"]


def _kdl_scalar(scalar: Scalar) -> str:
    literal = _literal(scalar, ("#true", "#false"), "#null")
    return _quoted(scalar.value) if literal is None else literal


_WRITERS: dict[str, Callable[[Mapping, Comments], list[str]]] = {
    "YAML": _yaml,
    "JSON": _json,
    "JSON5": _json5,
    "TOML": _toml,
    "KDL": _kdl,
}
