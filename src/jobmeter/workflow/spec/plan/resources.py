"""The files and user data that a spec names: each expanded, with the path or the value it stands for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from jobmeter.errors import quote
from jobmeter.workflow.plan import UserData
from jobmeter.workflow.spec.plan.name_index import NameIndex
from jobmeter.workflow.spec.plan.parameters import (
    Filler,
    Values,
    combinations,
    count_combinations,
    selected_parameters,
)
from jobmeter.workflow.spec.read.schema import FileSpec, Parameterised, UserDataSpec
from jobmeter.workflow.spec.read.spec_errors import Path, Problem

_T = TypeVar("_T")
Report = Callable[[Problem, Path], None]


class Shared(NamedTuple):
    """What all entries of the spec share."""

    parameters: Mapping[str, str | list[str]]
    variables: Mapping[str, str]


class Named(Generic[_T]):
    """Resources of one kind, found by name, by the name of a sweep of them, or by a regular expression."""

    def __init__(self, kind: str, entries: Sequence[tuple[str, str, _T]], unknown: Sequence[str]) -> None:
        """Each entry is a name, the template it was made from, and what it stands for."""
        self._entries = entries
        self._index = NameIndex(kind, [entry[0] for entry in entries], [entry[1] for entry in entries], unknown)

    def find(self, reference: str) -> list[tuple[str, _T]]:
        """The names and values that a reference means. Raises Problem if there is none."""
        return self._of(self._index.numbers(reference))

    def matching(self, expression: str) -> list[tuple[str, _T]]:
        return self._of(self._index.matching(expression))

    def _of(self, numbers: Sequence[int]) -> list[tuple[str, _T]]:
        return [(self._entries[number - 1][0], self._entries[number - 1][2]) for number in numbers]


class FilePath(NamedTuple):
    """The path of a file, as it is written in the spec and absolute."""

    written: str
    absolute: str


def expand_files(specs: Sequence[FileSpec], shared: Shared, directory: str, report: Report) -> Named[FilePath]:
    def resource(spec: FileSpec, filler: Filler, values: Values) -> FilePath:
        path = filler.fill(spec.path, values)
        if not path or "\0" in path:
            raise Problem("the path is empty" if not path else "has a NUL character", path=("path",))
        return FilePath(path, os.path.normpath(os.path.join(directory, os.path.expanduser(path))))

    return Named("file", *_expanded("files", specs, shared, resource, report))


def expand_data(
    specs: Sequence[UserDataSpec], values: Sequence[Any], shared: Shared, report: Report
) -> tuple[Named[UserData], dict[str, UserData]]:
    """All user data, to be found by reference and by name; `values` are the values in the spec, as JSON has them."""
    written = {id(spec): value for spec, value in zip(specs, values)}

    def resource(spec: UserDataSpec, filler: Filler, values: Values) -> UserData:
        return UserData(_filled(written[id(spec)], filler, values), spec.is_ephemeral)

    entries, unknown = _expanded("user_data", specs, shared, resource, report)
    return Named("user data", entries, unknown), {name: data for name, _, data in entries}


def _filled(value: Any, filler: Filler, values: Values) -> Any:
    if isinstance(value, str):
        return filler.fill(value, values)
    if isinstance(value, list):
        return [_filled(inner, filler, values) for inner in value]
    if isinstance(value, dict):
        return {key: _filled(inner, filler, values) for key, inner in value.items()}
    return value


_Spec = TypeVar("_Spec", bound=Parameterised)


def _expanded(
    field: str, specs: Sequence[_Spec], shared: Shared, resource: Callable[[_Spec, Filler, Values], _T], report: Report
) -> tuple[list[tuple[str, str, _T]], list[str]]:
    """Every expansion of the entries, and the names of entries that cannot be expanded."""
    entries: dict[str, tuple[str, str, _T]] = {}
    owners: dict[str, int] = {}
    unknown = []
    for index, spec in enumerate(specs):
        template = str(getattr(spec, "name"))  # noqa: B009 - every entry that is passed here has a name
        try:
            parameters = selected_parameters(spec, shared.parameters)
            count_combinations(parameters, spec.parameter_mode)
            filler = Filler([*parameters, *shared.variables])
            for values in combinations(parameters, spec.parameter_mode):
                filling = {**shared.variables, **values}
                name = filler.fill(template, filling)
                if not name.strip() or "/" in name or "\0" in name:
                    raise Problem(
                        f"{quote(name)} cannot be a name here: use letters, digits, _, - and .", path=("name",)
                    )
                entry = name, template, resource(spec, filler, filling)
                other = entries.setdefault(name, entry)
                if owners.setdefault(name, index) != index:
                    raise Problem(f"there is another of the name {quote(name)}", path=("name",))
                if other[2] != entry[2]:
                    raise Problem(
                        f"several of the name {quote(name)} would differ: put its parameters into the name",
                        path=("name",),
                    )
        except Problem as problem:
            unknown.append(template)
            report(problem, (field, index))
    return list(entries.values()), unknown
