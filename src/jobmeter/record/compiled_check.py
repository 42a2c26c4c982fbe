"""Compiles the check of an object to one expression: checking a record field by field takes as long as parsing it."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Union

from jobmeter.record.field_types import allowed_terms, field_types, keywords_of
from jobmeter.record.types import LARGEST

Check = Callable[[Any], Union[str, None]]
"""Takes a value and returns what is wrong with it, beginning with the place, or None if it is valid."""


def compile_check(
    fields: Mapping[str, Any],
    required: frozenset[str],
    explain: Check,
    check_of: Callable[[Any], Check],
    *,
    all_fields: bool,
) -> Check:
    """The check of an object with fields of these types.

    If the expression does not pass an object, for example because it has unknown fields, `explain` decides. `check_of`
    returns the check of a type, for types that the expression cannot test.
    """
    names = {"explain": explain, "text": check_of(str), "NOTHING": {}}
    source = _Source(names, check_of, all_fields)
    test = source.object_test("o", fields, required)
    lines = [
        "def check(o):",
        *(f"    {variable} = NOTHING" for variable, _ in source.loops),
        "    try:",
        f"        if o.__class__ is not dict or not ({test}):",
        "            return explain(o)",
    ]
    for variable, item_test in source.loops:
        lines += [f"        if {variable}:", f"            i = {variable}.values()"]
        lines += [f"            if not ({item_test}):", "                return explain(o)"]
    lines += ["        return None", "    except (KeyError, TypeError, OverflowError):", "        return explain(o)"]
    exec("\n".join(lines), source.names)  # made from the types alone: no part of it comes from a file
    return typing.cast("Check", source.names["check"])


class _Source:
    """The source code of a check while it is generated: tests, and the names that they use."""

    def __init__(self, names: dict[str, Any], check_of: Callable[[Any], Check], all_fields: bool) -> None:
        self.names = names
        self._check_of = check_of
        self._all_fields = all_fields
        self.loops: list[tuple[str, str]] = []  # a variable with many objects, and the test of all, as `i`
        self._count = 0

    def object_test(self, variable: str, fields: Mapping[str, Any], required: frozenset[str]) -> str:
        """The test that the object in a variable has these fields and, with `all_fields`, no others."""
        optional = [f"({name!r} in {variable})" for name in fields if name not in required]
        size = " + ".join([str(len(required)), *optional])
        parts = [f"len({variable}) == {size}"] if self._all_fields else []
        for name, hint in fields.items():
            test = self._test(hint, f"{variable}[{name!r}]")
            parts.append(test if name in required else f"({name!r} not in {variable} or {test})")
        return " and ".join(parts)

    def _test(self, hint: Any, value: str) -> str:
        """The test of one value."""
        annotated = typing.get_origin(hint) is typing.Annotated
        plain, *notes = typing.get_args(hint) if annotated else (hint,)
        keywords = keywords_of(notes)
        v = self._new_variable()
        is_class = f"({v} := {value}).__class__ is"
        if terms := allowed_terms(plain, notes):
            return f"{is_class} str and {v} in {set(terms)!r}"
        if plain in (int, float):
            least, most = keywords.get("minimum", -LARGEST), keywords.get("maximum", LARGEST)
            also = f" or {v}.__class__ is float" * (plain is float)
            return f"({is_class} int{also}) and {least!r} <= {v} <= {most!r}"
        if plain is str and not keywords.keys() - {"minLength"}:
            return f"{is_class} str and ({v}.isascii() or text({v}) is None){f' and {v}' * bool(keywords)}"
        if typing.get_origin(plain) in (Union, types.UnionType) and typing.get_args(plain)[1:] == (type(None),):
            return f"(({v} := {value}) is None or {self._test(typing.get_args(plain)[0], v)})"
        if typing.is_typeddict(plain):
            return f"{is_class} dict and ({self._typed_dict_test(v, plain)})"
        if typing.get_origin(plain) is dict and typing.is_typeddict(typing.get_args(plain)[1]):
            self.loops.append((v, self._test_of_all(typing.get_args(plain)[1])))
            return f'{is_class} dict and "".join({v}).isascii()'
        self.names[f"check_{v}"] = self._check_of(hint)
        if plain == dict[str, str]:
            joined = f'"".join({v}).isascii() and "".join({v}.values()).isascii()'
            return f"{is_class} dict and ({joined} or check_{v}({v}) is None)"
        return f"check_{v}({value}) is None"

    def _test_of_all(self, cls: Any) -> str:
        """The test of many objects, field by field: a tenth of the steps of testing one object after the other.

        If it raises TypeError, KeyError or OverflowError, the objects do not pass either.
        """
        fields, required = field_types(cls), cls.__required_keys__
        self.names["check_each"] = self._check_of(cls)
        if len(required) < len(fields) or self._is_nested(fields):
            return "not any(map(check_each, i))"
        shape = [f"set(map(type, i)) == {{dict}} and set(map(len, i)) == {{{len(fields)}}}"] * self._all_fields
        columns = {name: f"map({self._constant(itemgetter(name))}, i)" for name in fields}
        return " and ".join([*shape, *(self._column_test(hint, columns[name]) for name, hint in fields.items())])

    def _column_test(self, hint: Any, values: str) -> str:
        """The test of many texts, terms or numbers: `values` is an iterator. If in doubt, they do not pass."""
        plain, *notes = typing.get_args(hint) if typing.get_origin(hint) is typing.Annotated else (hint,)
        keywords = keywords_of(notes)
        if terms := allowed_terms(plain, notes):
            return f"{self._constant(frozenset(terms))}.issuperset({values})"
        v = self._new_variable()
        if plain is str:
            return f'"".join({v} := list({values})).isascii(){f" and all({v})" * bool(keywords)}'
        # If no number is below 0, none is larger than the sum. A sum with NaN is not below any number.
        numbers = f" and set(map(type, {v})) <= {{int, float}}" * self._all_fields
        return f"min({v} := list({values})) >= 0 and sum({v}) <= {keywords.get('maximum', LARGEST)!r}{numbers}"

    def _is_nested(self, fields: Mapping[str, Any]) -> bool:
        return not all((typing.get_args(hint) or (hint,))[0] in (str, float) for hint in fields.values())

    def _typed_dict_test(self, variable: str, cls: Any) -> str:
        return self.object_test(variable, field_types(cls), frozenset(cls.__required_keys__))

    def _constant(self, value: Any) -> str:
        """A name for a value that need not be made again for each object."""
        name = f"constant_{len(self.names)}"
        self.names[name] = value
        return name

    def _new_variable(self) -> str:
        self._count += 1
        return f"v{self._count}"
