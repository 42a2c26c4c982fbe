"""Reads the types of a record's fields, and what `Annotated` adds to each."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from jobmeter.record.types import Keyword


@functools.cache
def field_types(cls: Any) -> dict[str, Any]:
    """The fields of a TypedDict with their types, `Annotated` included."""
    return typing.get_type_hints(cls, include_extras=True)


def keywords_of(notes: Iterable[Any]) -> dict[str, Any]:
    """The keywords of JSON Schema among the notes of `Annotated`."""
    return {note.name: note.value for note in notes if isinstance(note, Keyword)}


def allowed_terms(hint: Any, notes: Sequence[Any]) -> list[str]:
    """The texts that are allowed; empty if any text is."""
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    return [str(term.value) for note in notes if isinstance(note, type) and issubclass(note, Enum) for term in note]
