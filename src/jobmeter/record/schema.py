"""Generates the JSON Schemas of what jobmeter writes from its types. `scripts/make_schema.py` ships them."""

from __future__ import annotations

import json
import types
import typing
from typing import Any, Union

from jobmeter.model import Term
from jobmeter.record.cluster_types import ClusterReport
from jobmeter.record.field_types import field_types
from jobmeter.record.types import LARGEST, Keyword, Record

Schema = dict[str, Any]

ID = "urn:jobmeter:run:1"
CLUSTER_ID = "urn:jobmeter:cluster:1"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FINITE = {
    "description": "A number that can be computed with: JSON has no NaN, and sums of 1e308 are none.",
    "type": "number",
    "minimum": -LARGEST,
    "maximum": LARGEST,
}
_SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    float: {"$ref": "#/$defs/Finite"},
}


def run_schema() -> Schema:
    """The schema of `jobmeter.run/1`, draft 2020-12."""
    return _whole(Record, ID, "jobmeter run record")


def cluster_schema() -> Schema:
    """The schema of `jobmeter.cluster/1`, draft 2020-12."""
    return _whole(ClusterReport, CLUSTER_ID, "jobmeter cluster report")


def _whole(cls: Any, schema_id: str, title: str) -> Schema:
    definitions: dict[str, Schema] = {"Finite": _FINITE}
    root = _object(cls, definitions)
    head = {"$schema": DIALECT, "$id": schema_id, "title": title}
    return {**head, **root, "$defs": dict(sorted(definitions.items()))}


def as_text(schema: Schema) -> str:
    return json.dumps(schema, indent=2) + "\n"


def _object(cls: Any, definitions: dict[str, Schema]) -> Schema:
    """The schema of a TypedDict. Unknown fields are allowed: a later version may add some."""
    hints = field_types(cls)
    return {
        "description": cls.__doc__,
        "type": "object",
        "properties": {name: _of(hint, definitions) for name, hint in hints.items()},
        **({"required": [name for name in hints if name in cls.__required_keys__]} if cls.__required_keys__ else {}),
    }


def _of(hint: Any, definitions: dict[str, Schema]) -> Schema:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _annotated(_of(arguments[0], definitions), arguments[1:])
    if hint in _SIMPLE:
        return dict(_SIMPLE[hint])
    if typing.is_typeddict(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin is typing.Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(argument, definitions) for argument in arguments]}
    raise TypeError(f"{hint!r}: no JSON Schema is known for this type")


def _annotated(schema: Schema, notes: tuple[Any, ...]) -> Schema:
    """The schema with what `Annotated` adds: a description, further keywords, or the terms that are allowed."""
    words = [note for note in notes if isinstance(note, str)]
    for note in notes:
        if isinstance(note, Keyword):
            schema[note.name] = note.value
        elif isinstance(note, type) and issubclass(note, Term):
            schema["enum"] = [term.value for term in note]
            words += [f"- {term}: {term.meaning}" for term in note]
    return {"description": "\n".join(words), **schema} if words else schema
