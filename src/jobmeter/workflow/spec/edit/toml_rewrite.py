"""Correcting the requirements in a TOML spec; tomlkit keeps its comments and layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobmeter.model import Requirement
from jobmeter.workflow.spec.edit.amounts import READERS, USUAL, WRITERS
from jobmeter.workflow.spec.edit.requirement_keys import REQUIREMENTS_KEY, SPELLINGS, new_size


def rewrite_toml(text: str, sizes: Mapping[str, Requirement]) -> str:
    """The new text of a spec that is known to be right."""
    import tomlkit

    mark = "\ufeff" if text.startswith("\ufeff") else ""
    document: Any = tomlkit.parse(text.removeprefix("\ufeff"))
    for table, steps in _tables(document):
        for field in SPELLINGS:
            _write(table, field, steps, sizes)
    for job in document["jobs"]:
        if REQUIREMENTS_KEY not in job and job["name"] in sizes:
            _add(job, sizes)
    new = tomlkit.dumps(document)
    if "\r\n" in text:  # what is new ends with \n alone
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    return mark + new


def _tables(document: Any) -> list[tuple[Any, list[str]]]:
    """Each table of a requirement, and the steps that use it."""
    tables: list[tuple[Any, list[str]]] = []
    named: dict[str, list[str]] = {}
    for job in document["jobs"]:
        requirement = job.get(REQUIREMENTS_KEY)
        if isinstance(requirement, str):
            named.setdefault(str(requirement), []).append(str(job["name"]))
        elif requirement is not None:
            tables.append((requirement, [str(job["name"])]))
    tables += [(table, named.get(str(table["name"]), [])) for table in document.get(REQUIREMENTS_KEY, [])]
    return tables


def _write(table: Any, field: str, steps: list[str], sizes: Mapping[str, Requirement]) -> None:
    key = next((spelling for spelling in SPELLINGS[field] if spelling in table), None)
    needs = [new_size(sizes, step, field) for step in steps]
    if all(need is None for need in needs):
        return
    if key is None:
        table[field] = _item(field, max(need for need in needs if need is not None), None)
        return
    now = READERS[field](_written(table[key]))
    largest = max(now if need is None else need for need in needs)
    if largest != now:
        table[key] = _item(field, largest, table[key])


def _add(job: Any, sizes: Mapping[str, Requirement]) -> None:
    import tomlkit

    requirement = tomlkit.inline_table()
    for field in SPELLINGS:
        size = new_size(sizes, str(job["name"]), field)
        if size is not None:
            requirement[field] = _item(field, size, None)
    if requirement:
        job[REQUIREMENTS_KEY] = requirement


def _written(item: Any) -> str:
    """The value's text as the schema reads it: 01:30:00 is a time of day to TOML."""
    return str(item.isoformat()) if hasattr(item, "isoformat") else str(item)


def _item(field: str, size: float, old: Any) -> Any:
    """The value for a field, of the same sort as the one before."""
    import tomlkit

    text = WRITERS[field](size, USUAL[field] if old is None else _written(old))
    is_number = field in ("cpus", "gpus") if old is None else not isinstance(old, str)
    if is_number and ":" not in text:
        return tomlkit.item(float(text) if "." in text else int(text))
    return tomlkit.string(text, literal=old is not None and old.as_string().startswith("'"))
