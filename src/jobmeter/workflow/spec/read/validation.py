"""Validating a document against the schema, and reporting what does not fit."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from jobmeter.errors import quote
from jobmeter.suggestion import nearest_name, suggest
from jobmeter.workflow.spec.read.field_types import kind_of
from jobmeter.workflow.spec.read.loading import Document
from jobmeter.workflow.spec.read.schema import Spec
from jobmeter.workflow.spec.read.spec_errors import Path, Problem, refuse


class Checked(NamedTuple):
    """A spec, and what does not fit the schema. If there are problems, the spec has only the parts that do fit.

    They are used to look for more problems. The spec is None if too little is left for that.
    """

    spec: Spec | None
    problems: list[Problem]


def check_document(document: Document) -> Checked:
    """The spec in a document, and all problems with it. Raises UsageError if there is no spec in it."""
    if document.values is None or document.values == {}:
        raise refuse(document.path, [Problem("the spec is empty. It needs at least `jobs`.")])
    if not isinstance(document.values, dict):
        message = f"a spec is a mapping with `jobs`, and here is {kind_of(document.values)}"
        raise refuse(document.path, [Problem(message, place=document.place(()))])
    try:
        spec = Spec.model_validate(document.values)
    except ValidationError as error:
        problems = _problems(document, error)
        return Checked(_without(document.values, problems), problems)
    if not spec.jobs:
        return Checked(None, [Problem("there are no jobs", path=("jobs",), place=document.place(("jobs",)))])
    return Checked(spec, [])


_DECISIVE = frozenset(("name", "parameters", "parameter_mode", "use_parameters", "variables", "path"))
"""Fields that determine which jobs there are: if one is wrong, no further problems are looked for."""


def _is_decisive(path: Path) -> bool:
    is_whole_list = len(path) == 1 and path[0] in ("jobs", "files", "user_data", "resource_requirements")
    return is_whole_list or not _DECISIVE.isdisjoint(part for part in path if isinstance(part, str))


def _without(values: dict[str, Any], problems: list[Problem]) -> Spec | None:
    """The spec without what is wrong in it; None if too little is left to look for more problems."""
    rest = copy.deepcopy(values)
    for problem in problems:
        if _is_decisive(problem.path):
            return None
        owner: Any = rest
        for part in problem.path[:-1]:
            owner = owner[part] if isinstance(part, int) else (owner or {}).get(part)
        last = problem.path[-1]
        if last == "command" and isinstance(owner, dict):
            owner["command"] = "true"
        elif isinstance(owner, dict):
            owner.pop(last, None)
        else:
            return None
    try:
        return Spec.model_validate(rest)
    except ValidationError:
        return None


def _problems(document: Document, error: ValidationError) -> list[Problem]:
    details = error.errors(include_url=False)
    places = [_place(document.values, detail["loc"]) for detail in details]
    unknown = {path for detail, path in zip(details, places) if detail["type"] == "extra_forbidden"}
    problems = []
    for detail, path in zip(details, places):
        if detail["type"] == "missing" and _is_misspelt(path, unknown):
            continue
        problems.append(Problem(_words(detail, path), path=path, place=document.place(path)))
    return problems


def _is_misspelt(missing: Path, unknown: set[Path]) -> bool:
    """Whether an unknown field of the same owner has nearly the name of a missing one: then it is only misspelt."""
    beside = [str(path[-1]) for path in unknown if path[:-1] == missing[:-1]]
    return nearest_name(str(missing[-1]), beside) is not None


def _place(values: Any, location: tuple[int | str, ...]) -> Path:
    """The path in the document for pydantic's location: without the parts that name a choice of types."""
    path: list[int | str] = []
    for part in location:
        if isinstance(values, dict) and (part in values or part not in ("one", "other")):
            values = values.get(part)
        elif isinstance(values, list) and isinstance(part, int) and part < len(values):
            values = values[part]
        else:
            continue
        path.append(part)
    return tuple(path)


def _words(detail: Any, path: Path) -> str:
    """Our message for an error of pydantic."""
    kind, value = detail["type"], detail["input"]
    if kind == "wrong":
        return str(detail["ctx"]["message"])
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return f"there is no field {quote(path[-1])}. {_instead_of(str(path[-1]), path[:-1])}"
    if kind == "literal_error":
        return f"{quote(value)} is not one of {detail['ctx']['expected'].replace(' or ', ', ')}"
    if kind == "string_type":
        return f"must be a text, and here is {kind_of(value)}"
    if kind == "list_type":
        return f"must be a list, and here is {kind_of(value)}"
    if kind in ("dict_type", "model_type"):
        return f"must be a mapping, and here is {kind_of(value)}"
    return str(detail["msg"])


def _instead_of(name: str, owner: Path) -> str:
    """A hint at what was probably meant by an unknown field: one of a job's sizes, or a field with another name."""
    sizes = ("jobs", "resource_requirements")
    if [part for part in owner if isinstance(part, str)] == ["jobs"] and name in fields_at(sizes):
        return f"Write it as `resource_requirements: {{{name}: …}}`."
    return suggest(name, fields_at(owner))


def fields_at(path: Path) -> list[str]:
    """The fields that the schema has at a place of the document."""
    from jobmeter.workflow.spec.read import schema

    names = [part for part in path if isinstance(part, str)]
    models: dict[tuple[str, ...], type[BaseModel]] = {
        (): schema.Spec,
        ("resource_monitor",): schema.MonitorSpec,
        ("resource_requirements",): schema.NamedSizes,
        ("jobs",): schema.JobSpec,
        ("jobs", "resource_requirements"): schema.Sizes,
        ("jobs", "retry"): schema.RetrySpec,
        ("jobs", "retry", "grow"): schema.Grow,
        ("jobs", "container"): schema.ContainerSpec,
        ("files",): schema.FileSpec,
        ("user_data",): schema.UserDataSpec,
        ("failure_handlers",): schema.FailureHandlerSpec,
        ("failure_handlers", "rules"): schema.FailureRuleSpec,
        ("actions",): schema.ActionSpec,
        ("slurm_schedulers",): schema.SlurmSchedulerSpec,
    }
    model = models.get(tuple(names))
    return list(model.model_fields) if model is not None else []
