"""Making the plan of a spec: sweeps expanded, names and files resolved, everything checked.

All problems are collected; those that may only be a consequence of another problem are not reported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from jobmeter.errors import quote
from jobmeter.suggestion import suggest
from jobmeter.workflow.plan import FailureRule, Job, Monitor, NodeRequests, Plan, UserData, data_reference
from jobmeter.workflow.spec.plan.actions import ActionContext, with_actions
from jobmeter.workflow.spec.plan.command import Programs
from jobmeter.workflow.spec.plan.dependencies import Neighbours, cycle_text, find_cycle
from jobmeter.workflow.spec.plan.expansion import Draft, Expansion, Surroundings, check_variable, waits_field
from jobmeter.workflow.spec.plan.parameters import MOST_JOBS, parameter_values, too_many
from jobmeter.workflow.spec.plan.resources import Shared, expand_data, expand_files
from jobmeter.workflow.spec.read.loading import Document
from jobmeter.workflow.spec.read.nodes import find, json_value
from jobmeter.workflow.spec.read.schema import WITHOUT_EFFECT, NamedSizes, Spec
from jobmeter.workflow.spec.read.spec_errors import Path, Place, Problem, refuse
from jobmeter.workflow.spec.read.validation import check_document
from jobmeter.working_directory import absolute_path


def make_plan(document: Document) -> Plan:
    """The plan of the spec in a document. Raises UsageError, with all problems, if the spec is not valid."""
    spec, wrong = check_document(document)
    problems = _Problems(document, wrong)
    if spec is None:
        raise problems.refusal()
    path = absolute_path(document.path)
    directory = os.path.dirname(path)
    shared = Shared(spec.parameters, spec.variables)
    _check_shared(spec, problems)
    files = expand_files(spec.files, shared, directory, problems.add)
    written = [_written(document, ("user_data", index, "data")) for index in range(len(spec.user_data))]
    data, user_data = expand_data(spec.user_data, written, shared, problems.add)
    programs = Programs(os.environ)
    around = Surroundings(
        shared=shared,
        requirements=_requirements(spec, problems),
        handlers=_handlers(spec, problems),
        schedulers=frozenset(scheduler.name for scheduler in spec.slurm_schedulers if scheduler.name),
        files=files,
        data=data,
        environment=spec.env,
        directory=directory,
        programs=programs,
        sort_method=spec.jobs_sort_method,
    )
    drafts, failed = _expand(spec, around, problems)
    jobs, neighbours = _linked(spec, drafts, failed, problems)
    context = ActionContext(directory, spec.env, spec.variables, programs)
    jobs = [_with_initial_data(job, user_data) if job.input_data else job for job in jobs]
    jobs = with_actions(spec.actions, jobs, neighbours.index, context, problems.add)
    _check_schedulers(spec, around.schedulers, problems)
    problems.raise_any()
    monitor = spec.resource_monitor
    return Plan(
        name=spec.name or os.path.splitext(os.path.basename(path))[0],
        description=spec.description,
        user=spec.user,
        path=path,
        monitor=Monitor(monitor.enabled, monitor.granularity, monitor.sample_interval_seconds, monitor.generate_plots),
        enforce=spec.enforce,
        jobs=jobs,
        project=spec.project,
        metadata=_metadata(document),
        user_data=user_data,
        node_requests=_node_requests(document, spec),
        without_effect=_without_effect(spec),
    )


class _Problems:
    """Collects the problems, one for each place in the spec, however many jobs of a sweep have it."""

    def __init__(self, document: Document, problems: list[Problem]) -> None:
        self._document = document
        self._problems = {problem.path: problem for problem in problems}
        self._first = problems

    def __bool__(self) -> bool:
        return bool(self._problems)

    def add(self, problem: Problem, path: Path) -> None:
        problem.path = (*path, *problem.path)
        if problem.path not in self._problems:
            problem.place = self.place(problem.path)
            self._problems[problem.path] = problem

    def place(self, path: Path) -> Place | None:
        return self._document.place(path)

    def refusal(self) -> Exception:
        others = [problem for problem in self._problems.values() if problem not in self._first]
        return refuse(self._document.path, [*self._first, *others])

    def raise_any(self) -> None:
        if self._problems:
            raise self.refusal()


def _written(document: Document, path: Path) -> Any:
    """The value at a path as JSON has it; None if there is none."""
    if document.root is None:
        return None
    values = document.values
    for part in path:
        if isinstance(values, dict) and part not in values:
            return None
        values = values[part]
    return json_value(find(document.root, path)[0])


def _check_shared(spec: Spec, problems: _Problems) -> None:
    for name, written in spec.parameters.items():
        try:
            parameter_values(name, written)
        except Problem as problem:
            problems.add(problem, ("parameters", name))
    for name in spec.variables:
        try:
            parameter_values(name, "")
        except Problem as problem:
            problems.add(problem, ("variables", name))
    for name in spec.env:
        try:
            check_variable(name)
        except Problem as problem:
            problems.add(problem, ("env", name))


def _expand(spec: Spec, around: Surroundings, problems: _Problems) -> tuple[list[Draft], list[str]]:
    """All jobs in the order of the spec, their names checked; and the names of entries that are not valid."""
    drafts: list[Draft] = []
    failed: list[str] = []
    first: dict[str, Draft] = {}
    for entry, job in enumerate(spec.jobs):
        try:
            expansion = Expansion(entry, job, around)
            if len(drafts) + expansion.count > MOST_JOBS:
                raise too_many(len(drafts) + expansion.count)
            new = expansion.drafts(len(drafts) + 1)
            for draft in new:
                other = first.setdefault(draft.job.name, draft)
                if other is not draft:
                    raise _collision(draft, other, problems)
            drafts += new
        except Problem as problem:
            failed.append(job.name)
            problems.add(problem, ("jobs", entry))
    return drafts, failed


def _requirements(spec: Spec, problems: _Problems) -> dict[str, NamedSizes]:
    named: dict[str, NamedSizes] = {}
    for index, sizes in enumerate(spec.resource_requirements):
        if sizes.name in named:
            message = f"there is another requirement {quote(sizes.name)}"
            problems.add(Problem(message), ("resource_requirements", index, "name"))
        named[sizes.name] = sizes
    return named


def _handlers(spec: Spec, problems: _Problems) -> dict[str, tuple[FailureRule, ...]]:
    named: dict[str, tuple[FailureRule, ...]] = {}
    for index, handler in enumerate(spec.failure_handlers):
        if handler.name in named:
            message = f"there is another failure handler {quote(handler.name)}"
            problems.add(Problem(message), ("failure_handlers", index, "name"))
        named[handler.name] = tuple(
            FailureRule(frozenset(rule.exit_codes), rule.match_all_exit_codes, rule.recovery_script, rule.max_retries)
            for rule in handler.rules
        )
    return named


def _check_schedulers(spec: Spec, schedulers: frozenset[str], problems: _Problems) -> None:
    for position, action in enumerate(spec.actions):
        name = action.scheduler
        if name is not None and action.scheduler_type != "local" and name not in schedulers:
            message = f"there is no scheduler {quote(name)}. {suggest(name, schedulers)}"
            problems.add(Problem(message), ("actions", position, "scheduler"))


def _collision(draft: Draft, other: Draft, problems: _Problems) -> Problem:
    name = quote(draft.job.name)
    if other.entry != draft.entry:
        place = problems.place(("jobs", other.entry, "name"))
        return Problem(f"there is another job {name}" + (f" in line {place.line}" if place else ""), path=("name",))
    message = f"several jobs of this sweep would be named {name}: its parameters have a value twice"
    return Problem(message, path=("name",))


def _linked(spec: Spec, drafts: list[Draft], failed: list[str], problems: _Problems) -> tuple[list[Job], Neighbours]:
    """The jobs with what they wait for, and the index of their names."""
    neighbours = Neighbours([draft.job.name for draft in drafts], [draft.job.step for draft in drafts], failed)
    for job, entry, _ in drafts:
        try:
            neighbours.add_outputs(job.number, job.outputs)
            neighbours.add_outputs(job.number, [data_reference(name) for name in job.output_data])
        except Problem as problem:
            field = "outputs" if spec.jobs[entry].outputs else "output_files"
            problems.add(problem, ("jobs", entry, field))
    jobs = []
    for job, entry, references in drafts:
        needed = (*job.inputs, *map(data_reference, job.input_data)) if job.input_data else job.inputs
        try:
            waits = references.names or references.regexes or needed
            before = neighbours.waits_for(job.number, references, needed) if waits else ()
            jobs.append(job._replace(blocked_by=before) if before else job)
        except Problem as problem:
            jobs.append(job)
            is_regex = problem.path[:1] == ("depends_on_regexes",)
            problems.add(problem, ("jobs", entry) if is_regex else ("jobs", entry, waits_field(spec.jobs[entry])[0]))
    if not problems and (circle := find_cycle([job.blocked_by for job in jobs])):
        entry = drafts[circle[0] - 1].entry
        message = f"these jobs wait for each other: {_circle_text(jobs, circle)}"
        problems.add(Problem(message), ("jobs", entry, waits_field(spec.jobs[entry])[0]))
    return jobs, neighbours


def _with_initial_data(job: Job, user_data: Mapping[str, UserData]) -> Job:
    values = {name: user_data[name].value for name in job.input_data if user_data[name].value is not None}
    return job._replace(initial_data=json.dumps(values, sort_keys=True)) if values else job


def _circle_text(jobs: list[Job], circle: list[int]) -> str:
    """The names along a cycle; a job that waits because of a file or user data is shown with the name of that."""
    names = [jobs[circle[0] - 1].name]
    for before, number in pairwise(circle):
        maker, reader = jobs[before - 1], jobs[number - 1]
        files = [os.path.relpath(path, reader.directory) for path in reader.inputs if path in maker.outputs]
        made = [*files, *(name for name in reader.input_data if name in maker.output_data)]
        names.append(f"{reader.name} (reads {made[0]})" if made else reader.name)
    return cycle_text(names)


def _metadata(document: Document) -> Any:
    """The metadata of the spec: parsed if it is a text that holds JSON, else as it is written."""
    value = _written(document, ("metadata",))
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _node_requests(document: Document, spec: Spec) -> NodeRequests:
    allocations = [action for action in spec.actions if action.action_type == "schedule_nodes"]
    return NodeRequests(
        tuple(scheduler.model_dump(exclude_none=True) for scheduler in spec.slurm_schedulers),
        _written(document, ("slurm_defaults",)) or {},
        tuple(action.model_dump(exclude_defaults=True) for action in allocations),
    )


def _without_effect(spec: Spec) -> tuple[str, ...]:
    names = [name for name in WITHOUT_EFFECT if getattr(spec, name)]
    for field, entries in (("jobs", spec.jobs), ("files", spec.files), ("actions", spec.actions)):
        for name in _UNUSED[field]:
            if any(getattr(entry, name) for entry in entries):
                names.append(f"{field}: {name}")
    return tuple(names)


_UNUSED = {"jobs": ("stdio",), "files": ("identifier", "st_mtime"), "actions": ("persistent",)}
"""Fields of entries that have no effect here."""
