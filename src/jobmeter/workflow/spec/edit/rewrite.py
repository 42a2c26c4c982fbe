"""Correcting the requirements in a spec, and nothing else in it: comments, layout, quotes and order stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jobmeter.atomic_file import replacing
from jobmeter.errors import UsageError, quote
from jobmeter.model import Requirement
from jobmeter.suggestion import suggest
from jobmeter.workflow.plan import Plan
from jobmeter.workflow.spec.edit.amounts import READERS, USUAL, WRITERS
from jobmeter.workflow.spec.edit.requirement_keys import FIELDS, REQUIREMENTS_KEY, SPELLINGS, new_size
from jobmeter.workflow.spec.edit.text_edits import NOTATIONS, Edits, Notation, edits_of
from jobmeter.workflow.spec.read import nodes
from jobmeter.workflow.spec.read.loading import Document, parse_document, read_document


def rewrite_requirements(path: str, sizes: Mapping[str, Requirement]) -> str:
    """The new text of the spec, in which the steps request `sizes`, rounded up; a field that is None there stays.

    A value that several steps share, by name, alias or merge, becomes the largest that one of them needs; a step
    without a size needs what it requests now. Raises UsageError if there is no such step, or the spec is not valid.
    """
    from jobmeter.workflow.spec.plan.planning import make_plan

    document = read_document(path)
    plan = make_plan(document)
    steps = {job.step for job in plan.jobs if not job.is_action}
    # Commands of actions request nothing, and have no place for a request.
    sizes = {step: size for step, size in sizes.items() if step in steps or not _is_action(plan, step)}
    for step in sizes:
        if step not in steps:
            raise UsageError(f"{path}: there is no job {quote(step)}. {suggest(step, steps)}")
    text = _rewrite_nodes(document, sizes)
    try:
        changed = make_plan(parse_document(path, text))
    except UsageError as error:
        raise UsageError(f"{path}: its layout cannot be changed automatically ({error}). Change it by hand.") from None
    _check_sizes(path, changed, sizes)
    return text


def _is_action(plan: Plan, step: str) -> bool:
    return any(job.is_action and job.step == step for job in plan.jobs)


def write_spec(path: str, text: str) -> None:
    """Replaces the content of the file atomically; its permissions stay, and a symbolic link stays a link."""
    try:
        with replacing(path) as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _check_sizes(path: str, plan: Plan, sizes: Mapping[str, Requirement]) -> None:
    """Raises UsageError if a job still requests too little: its layout was not understood, and was not corrected."""
    for job in plan.jobs:
        for field, name in FIELDS.items():
            size = new_size(sizes, job.step, field)
            requested = getattr(job.requirement, name)
            if size is not None and (requested is None or requested < size):
                text = WRITERS[field](size, USUAL[field])
                raise UsageError(f"{path}: {field} of {quote(job.step)} cannot be changed here: write {text} by hand")


class _Use(NamedTuple):
    """One step's use of one field."""

    step: str
    field: str
    entry: nodes.Mapping  # under `jobs`
    requirement: nodes.Mapping | None  # its requirement, inline or by name
    value: nodes.Scalar | None


def _rewrite_nodes(document: Document, sizes: Mapping[str, Requirement]) -> str:
    mark = "\ufeff" if document.text.startswith("\ufeff") else ""
    edits = edits_of(document.text.removeprefix(mark) if mark else document.text, document.format)
    assert isinstance(document.root, nodes.Mapping), "the plan was made of it"
    uses = list(_uses(document.root))
    _replace_values(edits, uses, sizes)
    _insert_values(edits, uses, sizes, _Habits(uses, NOTATIONS[document.format]))
    return mark + edits.result()


def _uses(root: nodes.Mapping) -> Iterator[_Use]:
    named: dict[str, nodes.Node] = {}
    for requirement in getattr(_value(root, REQUIREMENTS_KEY), "items", []):
        name = _value(requirement, "name")
        if isinstance(name, nodes.Scalar):
            named[name.value] = requirement
    for entry in getattr(_value(root, "jobs"), "items", []):
        step = _value(entry, "name")
        assert isinstance(step, nodes.Scalar), "the plan was made of it"
        requirement = _value(entry, REQUIREMENTS_KEY)
        if isinstance(requirement, nodes.Scalar):
            requirement = None if requirement.is_nothing else named.get(requirement.value)
        assert not isinstance(requirement, (nodes.Scalar, nodes.Sequence)), "the plan was made of it"
        for field, spellings in SPELLINGS.items():
            values = [_value(requirement, spelling) for spelling in spellings] if requirement is not None else []
            scalars = [value for value in values if isinstance(value, nodes.Scalar) and not value.is_nothing]
            yield _Use(step.value, field, entry, requirement, scalars[0] if scalars else None)


def _value(mapping: nodes.Node | None, key: str) -> nodes.Node | None:
    if isinstance(mapping, nodes.Mapping):
        for name, _, value in nodes.merged(mapping):
            if name == key:
                return value
    return None


def _replace_values(edits: Edits, uses: list[_Use], sizes: Mapping[str, Requirement]) -> None:
    """Changes each value in the spec to the largest that a step which uses it needs."""
    shared: dict[int, list[_Use]] = {}
    for use in uses:
        if use.value is not None:
            shared.setdefault(id(use.value), []).append(use)
    for users in shared.values():
        value, field = users[0].value, users[0].field
        assert value is not None, "that is how they were chosen"
        now = READERS[field](value.value)
        needs = [new_size(sizes, use.step, use.field) for use in users]
        largest = max(now if need is None else need for need in needs)
        if largest != now:
            edits.replace(value, WRITERS[field](largest, value.value))


class _Habits:
    """How this spec writes requirements; new values are written the same way."""

    def __init__(self, uses: list[_Use], notation: Notation) -> None:
        self.notation = notation
        self._like: dict[str, nodes.Scalar] = {}
        self._keys: dict[str, str] = {}
        self.in_lines = False  # each key on a line of its own
        for use in uses:
            if use.value is not None:
                self._like.setdefault(use.field, use.value)
            if isinstance(use.requirement, nodes.Mapping):
                self.in_lines = self.in_lines or not use.requirement.flow
                for key in SPELLINGS[use.field]:
                    if _value(use.requirement, key) is not None:
                        self._keys.setdefault(use.field, key)

    def key(self, field: str) -> str:
        return self._keys.get(field, field)

    def value(self, field: str, size: float) -> str:
        like = self._like.get(field)
        if like is not None and like.style not in ("|", ">"):
            return f"{like.style}{WRITERS[field](size, like.value)}{like.style}"
        text = WRITERS[field](size, USUAL[field])
        return f'"{text}"' if self.notation.quotes_texts and field in ("memory", "runtime") else text

    def braces(self, values: Mapping[str, float]) -> str:
        """A whole requirement on one line."""
        return self.notation.braces({self.key(field): self.value(field, size) for field, size in values.items()})


def _insert_values(edits: Edits, uses: list[_Use], sizes: Mapping[str, Requirement], habits: _Habits) -> None:
    """Adds sizes that the spec does not have yet: to the step's requirement, or as a new requirement to the job."""
    missing: dict[int, tuple[_Use, dict[str, float]]] = {}
    for use in uses:
        size = new_size(sizes, use.step, use.field)
        if use.value is None and size is not None:
            owner = use.entry if use.requirement is None else use.requirement
            values = missing.setdefault(id(owner), (use, {}))[1]
            values[use.field] = max(size, values.get(use.field, 0))
    for use, values in missing.values():
        if use.requirement is not None:
            _add_fields(edits, use.requirement, values, habits)
        else:
            _add_requirement(edits, use.entry, values, habits)


def _add_fields(edits: Edits, requirement: nodes.Mapping, values: dict[str, float], habits: _Habits) -> None:
    new = {}
    for field, size in values.items():
        empty = _own_key(requirement, SPELLINGS[field])
        if empty is not None:
            edits.fill(empty, habits.value(field, size))
        else:
            new[habits.key(field)] = habits.value(field, size)
    if new:
        edits.insert(requirement, new)


def _add_requirement(edits: Edits, entry: nodes.Mapping, values: dict[str, float], habits: _Habits) -> None:
    empty = _own_key(entry, (REQUIREMENTS_KEY,))
    if empty is not None:
        edits.fill(empty, habits.braces(values))
    elif entry.flow or not (habits.in_lines and habits.notation.has_blocks):
        edits.insert(entry, {REQUIREMENTS_KEY: habits.braces(values)})
    else:
        start = edits.newline + edits.indentation_within(entry)
        lines = [f"{start}{habits.key(field)}: {habits.value(field, size)}" for field, size in values.items()]
        edits.insert(entry, {REQUIREMENTS_KEY: "".join(lines)})


def _own_key(mapping: nodes.Mapping, names: tuple[str, ...]) -> nodes.Scalar | None:
    for key, _ in mapping.pairs:
        if isinstance(key, nodes.Scalar) and key.value in names:
            return key
    return None
