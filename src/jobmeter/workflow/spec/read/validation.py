"""Validating a document against the schema, and reporting what does not fit."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from jobmeter.errors import quote
from jobmeter.suggestion import nearest_name, suggest
from jobmeter.workflow.spec.read.loading import Document
from jobmeter.workflow.spec.read.schema import Spec, kind_of
from jobmeter.workflow.spec.read.spec_errors import Path, Problem, refuse

_MOST_REPORTED = 1000


def check_document(document: Document) -> Spec:
    """The spec in a document. UsageError with line and field when it does not fit the schema."""
    if document.values is None or document.values == {}:
        raise refuse(document.path, [Problem("the spec is empty. It needs at least `jobs`.")])
    if not isinstance(document.values, dict):
        message = f"a spec is a mapping with `jobs`, and here is {kind_of(document.values)}"
        raise refuse(document.path, [Problem(message, line=document.line(()))])
    try:
        spec = Spec.model_validate(document.values)
    except ValidationError as error:
        raise refuse(document.path, _problems(document, error)) from None
    if not spec.jobs:
        raise refuse(document.path, [Problem("there are no jobs", path=("jobs",), line=document.line(("jobs",)))])
    return spec


def _problems(document: Document, error: ValidationError) -> list[Problem]:
    details = error.errors(include_url=False)[:_MOST_REPORTED]
    places = [_place(document.values, detail["loc"]) for detail in details]
    unknown = {path for detail, path in zip(details, places) if detail["type"] == "extra_forbidden"}
    problems = []
    for detail, path in zip(details, places):
        if detail["type"] == "missing" and _is_misspelt(path, unknown):
            continue
        problems.append(Problem(_words(detail, path), path=path, line=document.line(path)))
    return problems


def _is_misspelt(missing: Path, unknown: set[Path]) -> bool:
    """Whether beside a missing field there is one whose name is nearly the same: that one is the mistake."""
    beside = [str(path[-1]) for path in unknown if path[:-1] == missing[:-1]]
    return nearest_name(str(missing[-1]), beside) is not None


def _place(values: Any, location: tuple[int | str, ...]) -> Path:
    """Where pydantic's location is in the document: without the parts that name a choice of types."""
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
    """What pydantic found, in our words."""
    kind, value = detail["type"], detail["input"]
    if kind == "wrong":
        return str(detail["ctx"]["message"])
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return f"there is no field {quote(path[-1])}. {suggest(str(path[-1]), fields_at(path[:-1]))}"
    if kind == "literal_error":
        return f"{quote(value)} is none of {detail['ctx']['expected'].replace(' or ', ', ')}"
    if kind == "string_type":
        return f"must be a text, and here is {kind_of(value)}"
    if kind == "list_type":
        return f"must be a list, and here is {kind_of(value)}"
    if kind in ("dict_type", "model_type"):
        return f"must be a mapping, and here is {kind_of(value)}"
    return str(detail["msg"])


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
    }
    model = models.get(tuple(names))
    return list(model.model_fields) if model is not None else []
