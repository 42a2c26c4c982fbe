"""Making the plan of a spec: sweeps expanded, names and files resolved, everything checked."""

from __future__ import annotations

import os

from jobmeter.errors import quote
from jobmeter.workflow.plan import Job, Monitor, Plan
from jobmeter.workflow.spec.plan.command import Programs
from jobmeter.workflow.spec.plan.dependencies import Neighbours, cycle_text, find_cycle
from jobmeter.workflow.spec.plan.expansion import Draft, Expansion, waits_field
from jobmeter.workflow.spec.plan.parameters import MOST_JOBS, too_many
from jobmeter.workflow.spec.read.loading import Document
from jobmeter.workflow.spec.read.schema import NamedSizes, Spec
from jobmeter.workflow.spec.read.spec_errors import Path, Problem, refuse
from jobmeter.workflow.spec.read.validation import check_document


def make_plan(document: Document) -> Plan:
    """The plan of the spec in a document. UsageError when there is something wrong with it."""
    spec = check_document(document)
    path = os.path.abspath(document.path)
    problems = _Problems(document)
    drafts = _expand(spec, os.path.dirname(path), problems)
    jobs = _linked(spec, drafts, problems)
    monitor = spec.resource_monitor
    return Plan(
        name=spec.name or os.path.splitext(os.path.basename(path))[0],
        description=spec.description,
        user=spec.user,
        path=path,
        monitor=Monitor(monitor.enabled, monitor.granularity, monitor.sample_interval_seconds, monitor.generate_plots),
        enforce=spec.enforce,
        jobs=jobs,
    )


class _Problems:
    """Collects the problems, one per place, however many jobs a sweep makes of it."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._problems: dict[Path, Problem] = {}

    def add(self, problem: Problem, *path: str | int) -> None:
        problem.path = (*path, *problem.path)
        if problem.path not in self._problems:
            problem.line = self.line(problem.path)
            self._problems[problem.path] = problem

    def line(self, path: Path) -> int | None:
        return self._document.line(path)

    def raise_any(self) -> None:
        if self._problems:
            raise refuse(self._document.path, list(self._problems.values()))


def _expand(spec: Spec, directory: str, problems: _Problems) -> list[Draft]:
    """All jobs in the order of the spec, their names checked."""
    named = _requirements(spec, problems)
    programs = Programs(os.environ)
    drafts: list[Draft] = []
    first: dict[str, Draft] = {}
    for entry, job in enumerate(spec.jobs):
        try:
            expansion = Expansion(entry, job, named, directory, programs)
            if len(drafts) + expansion.count > MOST_JOBS:
                raise too_many(len(drafts) + expansion.count)
            for draft in expansion.drafts(len(drafts) + 1):
                other = first.setdefault(draft.job.name, draft)
                if other is not draft:
                    raise _collision(draft, other, expansion, problems)
                drafts.append(draft)
        except Problem as problem:
            problems.add(problem, "jobs", entry)
    problems.raise_any()
    return drafts


def _requirements(spec: Spec, problems: _Problems) -> dict[str, NamedSizes]:
    named: dict[str, NamedSizes] = {}
    for index, sizes in enumerate(spec.resource_requirements):
        if sizes.name in named:
            message = f"there is another requirement {quote(sizes.name)}"
            problems.add(Problem(message), "resource_requirements", index, "name")
        named[sizes.name] = sizes
    return named


def _collision(draft: Draft, other: Draft, expansion: Expansion, problems: _Problems) -> Problem:
    name = quote(draft.job.name)
    if other.entry != draft.entry:
        line = problems.line(("jobs", other.entry, "name"))
        return Problem(f"there is another job {name}" + (f" in line {line}" if line else ""), path=("name",))
    lacking = " and ".join(f"{{{parameter}}}" for parameter in expansion.lacking())
    why = f"put {lacking} into the name" if lacking else "its parameters have a value twice"
    return Problem(f"several jobs of this sweep would be named {name}: {why}", path=("name",))


def _linked(spec: Spec, drafts: list[Draft], problems: _Problems) -> list[Job]:
    """The jobs with what they wait for."""
    neighbours = Neighbours([draft.job.name for draft in drafts], [draft.job.step for draft in drafts])
    for job, entry, _ in drafts:
        try:
            neighbours.add_outputs(job.number, job.outputs)
        except Problem as problem:
            problems.add(problem, "jobs", entry, "outputs")
    problems.raise_any()
    jobs = []
    for job, entry, names in drafts:
        try:
            before = neighbours.waits_for(job.number, names, job.inputs) if names or job.inputs else ()
            jobs.append(job._replace(blocked_by=before) if before else job)
        except Problem as problem:
            problems.add(problem, "jobs", entry, waits_field(spec.jobs[entry])[0])
    problems.raise_any()
    circle = find_cycle([job.blocked_by for job in jobs])
    if circle:
        entry = drafts[circle[0] - 1].entry
        message = f"these jobs wait for each other: {cycle_text([jobs[number - 1].name for number in circle])}"
        problems.add(Problem(message), "jobs", entry, waits_field(spec.jobs[entry])[0])
    problems.raise_any()
    return jobs
