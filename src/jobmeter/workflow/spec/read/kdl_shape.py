"""What the nodes of KDL stand for in a spec: which are lists, and which have their name as the first argument.

For example, this node stands for `jobs: [{name: train, command: ./train, depends_on: [a, b], parameters: {i: "1:5"}}]`:

    job "train" {
        command "./train"
        depends_on "a" "b"
        parameters { i "1:5" }
    }
"""

from __future__ import annotations

import json
from collections.abc import Mapping as Map
from typing import NamedTuple

from jobmeter.workflow.spec.read.nodes import Mapping, Mark, Node, Scalar, Sequence, node_of


class Entry(NamedTuple):
    """An argument; with a key, a property."""

    key: Scalar | None
    value: Scalar


class KdlNode(NamedTuple):
    """A node as it is written."""

    name: Scalar
    entries: list[Entry]
    children: list[KdlNode] | None  # None: it has no block
    end: Mark
    block: Mark | None  # where its block begins


class _Field(NamedTuple):
    """The field of the spec that a node stands for."""

    name: str  # of the field in the spec
    is_list: bool = True  # even if there is only one such node
    inner: Map[str, _Field] | None = None  # fields of a mapping, whose first argument is its name


_RULE = {"exit_code": _Field("exit_codes"), "exit_codes": _Field("exit_codes")}
_HANDLER = {"rule": _Field("rules", inner=_RULE)}
_JOB = {
    "depends_on": _Field("depends_on"),
    "depends_on_job": _Field("depends_on"),
    "depends_on_regex": _Field("depends_on_regexes"),
    "depends_on_job_regex": _Field("depends_on_regexes"),
    "blocked_by": _Field("blocked_by"),
    "blocked_by_job": _Field("blocked_by"),
    "input_file": _Field("input_files"),
    "output_file": _Field("output_files"),
    "input_file_regex": _Field("input_file_regexes"),
    "output_file_regex": _Field("output_file_regexes"),
    "input_user_data": _Field("input_user_data"),
    "output_user_data": _Field("output_user_data"),
    "input_user_data_regex": _Field("input_user_data_regexes"),
    "output_user_data_regex": _Field("output_user_data_regexes"),
    "input": _Field("inputs"),
    "output": _Field("outputs"),
    "use_parameter": _Field("use_parameters"),
}
_ACTION = {
    "command": _Field("commands"),
    "job": _Field("jobs"),
    "job_name_regex": _Field("job_name_regexes"),
}
_ROOT = {
    "job": _Field("jobs", inner=_JOB),
    "file": _Field("files", inner={}),
    "user_data": _Field("user_data", inner={}),
    "resource_requirements": _Field("resource_requirements", inner={}),
    "failure_handler": _Field("failure_handlers", inner=_HANDLER),
    "slurm_scheduler": _Field("slurm_schedulers", inner={}),
    "action": _Field("actions", inner=_ACTION),
}
SINGULAR = {field.name: node for node, field in _ROOT.items()} | {"rules": "rule"}
"""Field whose entries are mappings → the name of the node for each entry."""
ITEM = "-"
"""The name of nodes that are the items of a list."""


def shaped(nodes: list[KdlNode], start: Mark) -> Mapping:
    """The document as a mapping."""
    root = Mapping(start, flow=False)
    _fill(root, nodes, _ROOT)
    return root


def _fill(mapping: Mapping, nodes: list[KdlNode], fields: Map[str, _Field]) -> None:
    """Add the fields that the nodes stand for; the values of several nodes of the same field become a list."""
    places: dict[str, int] = {}
    for node in nodes:
        field = fields.get(node.name.value, _Field(node.name.value, is_list=False))
        node.name.value = field.name
        value = _value(node, field)
        if field.is_list and not isinstance(value, Sequence):
            value = _list_of(value)
        if field.name not in places:
            places[field.name] = len(mapping.pairs)
            mapping.pairs.append((node.name, value))
            mapping.ends.append(node.end)
            continue
        at = places[field.name]
        before = mapping.pairs[at][1]
        together = before if isinstance(before, Sequence) else _list_of(before)
        together.items += value.items if isinstance(value, Sequence) else [value]
        mapping.pairs[at] = mapping.pairs[at][0], together
        mapping.ends[at] = node.end


def _list_of(value: Node) -> Sequence:
    sequence = Sequence(value.start, flow=False)
    sequence.items.append(value)
    return sequence


def _value(node: KdlNode, field: _Field) -> Node:
    arguments = [entry.value for entry in node.entries if entry.key is None]
    properties = [(entry.key, entry.value) for entry in node.entries if entry.key is not None]
    if field.inner is not None:
        named = arguments[:1] if arguments else []
        return _mapping(node, named, properties, field.inner)
    if properties or (node.children is not None and not _are_items(node.children)):
        return _mapping(node, arguments[:1], properties, {})
    if node.children:  # the items of a list
        sequence = Sequence(node.name.start, flow=False)
        sequence.items = [_value(item, _Field(ITEM, is_list=False)) for item in node.children]
        return sequence
    if len(arguments) == 1:
        return _parsed(arguments[0]) if node.name.value == "data" else arguments[0]
    if arguments:
        sequence = Sequence(arguments[0].start, flow=True)
        sequence.items = list(arguments)
        sequence.end = node.end
        return sequence
    return Scalar("", node.name.end, node.name.end, "")


def _are_items(children: list[KdlNode]) -> bool:
    return bool(children) and all(child.name.value == ITEM for child in children)


def _mapping(
    node: KdlNode, name: list[Scalar], properties: list[tuple[Scalar, Scalar]], fields: Map[str, _Field]
) -> Mapping:
    mapping = Mapping(node.name.start, flow=False)
    mapping.end = node.end
    for value in name:
        mapping.pairs.append((Scalar("name", value.start, value.start, ""), value))
        mapping.ends.append(value.end)
    for key, value in properties:
        mapping.pairs.append((key, value))
        mapping.ends.append(value.end)
    _fill(mapping, node.children or [], fields)
    return mapping


def _parsed(text: Scalar) -> Node:
    """The nodes of a text that holds JSON, all at the position of the text: in KDL, user data is written like this."""
    if text.style and text.value.lstrip()[:1] in ("{", "["):
        try:
            return node_of(json.loads(text.value), text.start, text.end)
        except (ValueError, RecursionError):
            pass  # then it is just a text
    return text
