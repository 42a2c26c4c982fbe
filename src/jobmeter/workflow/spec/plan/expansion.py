"""Expands one entry under `jobs` into its jobs: one, or all jobs of a sweep."""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jobmeter.errors import quote
from jobmeter.model import Requirement
from jobmeter.suggestion import suggest
from jobmeter.workflow.plan import FailureRule, Job, Retry, UserData
from jobmeter.workflow.spec.plan.command import Programs, invocation, shell_command
from jobmeter.workflow.spec.plan.dependencies import References
from jobmeter.workflow.spec.plan.job_names import check_name
from jobmeter.workflow.spec.plan.parameters import (
    Filler,
    Values,
    combinations,
    count_combinations,
    selected_parameters,
)
from jobmeter.workflow.spec.plan.relations import Relations
from jobmeter.workflow.spec.plan.resources import FilePath, Named, Shared
from jobmeter.workflow.spec.read.schema import ContainerSpec, JobSpec, NamedSizes, RetrySpec, Sizes
from jobmeter.workflow.spec.read.spec_errors import Path, Problem


class Draft(NamedTuple):
    """A job whose dependencies are not resolved yet."""

    job: Job
    entry: int  # the index under `jobs`
    waits_for: References


class Surroundings(NamedTuple):
    """What the entries of a spec refer to."""

    shared: Shared
    requirements: Mapping[str, NamedSizes]
    handlers: Mapping[str, tuple[FailureRule, ...]]
    schedulers: frozenset[str]
    files: Named[FilePath]
    data: Named[UserData]
    environment: Mapping[str, str]
    directory: str
    programs: Programs
    sort_method: str


class Expansion:
    """The jobs of one entry. Raises Problem, with the path below the entry, if the entry is not valid."""

    def __init__(self, entry: int, spec: JobSpec, around: Surroundings) -> None:
        self._entry = entry
        self._spec = spec
        self._around = around
        self._parameters = selected_parameters(spec, around.shared.parameters)
        self.count = count_combinations(self._parameters, spec.parameter_mode)
        self._filler = Filler([*self._parameters, *around.shared.variables])
        self._sizes = _sizes(spec, around.requirements)
        self._rules = _rules(spec, around.handlers)
        self._retry = _retry(spec.retry)
        self._container = _container(spec.container)
        self._rank = _rank(self._sizes[0], around.sort_method)
        if spec.scheduler is not None and spec.scheduler not in around.schedulers:
            hint = suggest(spec.scheduler, around.schedulers)
            raise Problem(f"there is no scheduler {quote(spec.scheduler)}. {hint}", path=("scheduler",))
        for name in spec.env:
            at(("env", name), check_variable, name)

    def drafts(self, number: int) -> list[Draft]:
        """The jobs, numbered from `number`; expansions that have the same name are one job."""
        drafts = [
            self._draft(number + position, values)
            for position, values in enumerate(combinations(self._parameters, self._spec.parameter_mode))
        ]
        return self._merged(drafts, number) if self.lacking() else drafts

    def lacking(self) -> list[str]:
        """The parameters that take several values and are not in the name."""
        mentioned = self._filler.mentioned(self._spec.name)
        return [name for name, values in self._parameters.items() if name not in mentioned and len(set(values)) > 1]

    def _merged(self, drafts: list[Draft], number: int) -> list[Draft]:
        """One job for each name, which waits for, reads and makes all that any of its expansions does."""
        by_name: dict[str, list[Draft]] = {}
        for draft in drafts:
            by_name.setdefault(draft.job.name, []).append(draft)
        merged = []
        for position, alike in enumerate(by_name.values()):
            first = alike[0].job
            if any(_executed(draft.job) != _executed(first) for draft in alike):
                lacking = " and ".join(f"{{{parameter}}}" for parameter in self.lacking())
                message = f"several jobs of this sweep would be named {quote(first.name)}: put {lacking} into the name"
                raise Problem(message, path=("name",))
            labels = set(first.labels.items()).intersection(*(draft.job.labels.items() for draft in alike))
            job = first._replace(
                number=number + position,
                inputs=_union(draft.job.inputs for draft in alike),
                outputs=_union(draft.job.outputs for draft in alike),
                input_data=_union(draft.job.input_data for draft in alike),
                output_data=_union(draft.job.output_data for draft in alike),
                labels={key: value for key, value in first.labels.items() if (key, value) in labels},
            )
            names = _union(draft.waits_for.names for draft in alike)
            merged.append(Draft(job, self._entry, References(names, _union(d.waits_for.regexes for d in alike))))
        return merged

    def _draft(self, number: int, parameters: Values) -> Draft:
        spec, around = self._spec, self._around
        values = {**around.shared.variables, **parameters} if around.shared.variables else parameters
        name = at(("name",), self._filler.fill, spec.name, values)
        at(("name",), check_name, name)
        directory = self._place(("cwd",), around.directory, spec.cwd or "", values)
        environment = {**around.environment, **self._filled_map("env", spec.env, values)}
        relations = self._relations(directory, values)
        command, script = at(("command",), self._command, directory, environment, values, relations)
        job = Job(
            number=number,
            name=name,
            step=spec.name,
            command=command,
            script=script,
            directory=directory,
            environment=environment,
            requirement=self._sizes[0],
            gpus=self._sizes[1],
            requirement_name=self._sizes[2],
            blocked_by=(),
            inputs=tuple(relations.inputs),
            outputs=tuple(relations.outputs),
            retry=self._retry,
            priority=spec.priority,
            labels={**parameters, **self._filled_map("labels", spec.labels, values)},
            container=at(("container",), self._filled_deep, self._container, values),
            runs_after_failure=not spec.cancel_on_blocking_job_failure,
            failure_rules=self._rules,
            input_data=tuple(relations.input_data),
            output_data=tuple(relations.output_data),
            heeds_sigterm=spec.supports_termination is not False,
            rank=self._rank,
            num_nodes=self._sizes[3],
            custom=self._sizes[4],
            scheduler=spec.scheduler,
        )
        field, names = waits_field(spec)
        waits_for = References(
            self._filled((field,), names, values),
            self._filled(("depends_on_regexes",), spec.depends_on_regexes, values),
        )
        return Draft(job, self._entry, waits_for)

    def _relations(self, directory: str, values: Values) -> Relations:
        """What the job reads and makes according to its fields; references in its command may add to it."""
        spec, around = self._spec, self._around
        relations = Relations(around.files, around.data)
        relations.inputs.update((self._place(("inputs",), directory, path, values), None) for path in spec.inputs)
        relations.outputs.update((self._place(("outputs",), directory, path, values), None) for path in spec.outputs)
        for side in ("input", "output"):
            for field, add in (
                (f"{side}_files", relations.add_file),
                (f"{side}_file_regexes", relations.add_files_matching),
                (f"{side}_user_data", relations.add_data),
                (f"{side}_user_data_regexes", relations.add_data_matching),
            ):
                for position, text in enumerate(getattr(spec, field)):
                    at((field, position), add, side, self._filler.fill(text, values))
        return relations

    def _command(
        self, directory: str, environment: Mapping[str, str], values: Values, relations: Relations
    ) -> tuple[list[str], str]:
        spec = self._spec
        if isinstance(spec.command, list) and spec.invocation_script is None:
            words = [relations.resolved(self._filler.fill(word, values), directory) for word in spec.command]
            if not words or not words[0]:
                raise Problem("the command is empty")
            _check_no_nul(*words)
            return words, shlex.join(words)
        command = shlex.join(spec.command) if isinstance(spec.command, list) else spec.command
        script = relations.resolved(self._filler.fill(command, values), directory)
        shell: bool | str | list[str] = spec.shell
        if spec.invocation_script is not None and script.strip():
            shell, before = invocation(spec.invocation_script, spec.shell, directory)
            script = f"{relations.resolved(self._filler.fill(before, values), directory)} {script}"
        _check_no_nul(script)
        programs = None if self._container is not None else self._around.programs
        return shell_command(script, shell, directory, environment, programs), script.strip("\n")

    def _place(self, field: Path, directory: str, path: str, values: Values) -> str:
        """A path of the spec with its parameters filled in, made absolute."""
        if not path:
            return directory
        filled = at(field, self._filler.fill, path, values)
        at(field, _check_no_nul, filled)
        return os.path.normpath(os.path.join(directory, os.path.expanduser(filled)))

    def _filled(self, field: Path, texts: Sequence[str], values: Values) -> tuple[str, ...]:
        return tuple([at(field, self._filler.fill, text, values) for text in texts])

    def _filled_map(self, field: str, texts: Mapping[str, str], values: Values) -> dict[str, str]:
        return {key: at((field, key), self._filler.fill, text, values) for key, text in texts.items()}

    def _filled_deep(self, value: Any, values: Values) -> Any:
        if isinstance(value, str):
            return self._filler.fill(value, values)
        if isinstance(value, list):
            return [self._filled_deep(inner, values) for inner in value]
        if isinstance(value, dict):
            return {key: self._filled_deep(inner, values) for key, inner in value.items()}
        return value


def _union(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Each text once, in the order of their first appearance."""
    return tuple(dict.fromkeys(itertools.chain.from_iterable(groups)))


def _executed(job: Job) -> tuple[Any, ...]:
    return job.command, job.directory, job.environment, job.container


def waits_field(spec: JobSpec) -> tuple[str, list[str]]:
    """The name of the field in which a job says what it waits for, and the value of that field."""
    if spec.depends_on is not None:
        return "depends_on", spec.depends_on
    return "blocked_by", spec.blocked_by or []


def at(path: Path, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `function`; if it raises Problem, `path` is put before the path of the problem."""
    try:
        return function(*arguments)
    except Problem as problem:
        problem.path = (*path, *problem.path)
        raise


def _sizes(
    spec: JobSpec, named: Mapping[str, NamedSizes]
) -> tuple[Requirement, int, str | None, int, dict[str, float]]:
    """What a job requests, its GPUs, the name of its requirement, its nodes, and resources that a cluster defines."""
    requirement = spec.resource_requirements
    if requirement is None:
        return Requirement(), 0, None, 1, {}
    name = None
    if isinstance(requirement, str):
        name = requirement
        if name not in named:
            message = f"there is no requirement {quote(name)}. {suggest(name, named)}"
            raise Problem(message, path=("resource_requirements",))
        requirement = named[name]
    sizes: Sizes = requirement
    cpus = sizes.cpus if sizes.cpus is not None else sizes.num_cpus
    gpus = sizes.gpus if sizes.gpus is not None else sizes.num_gpus
    # Many specs write 0 to request none.
    requested = Requirement(cpus, sizes.memory, sizes.runtime, gpus or None)
    return requested, gpus or 0, name, sizes.num_nodes or 1, sizes.custom or {}


def _rules(spec: JobSpec, handlers: Mapping[str, tuple[FailureRule, ...]]) -> tuple[FailureRule, ...]:
    name = spec.failure_handler
    if name is None:
        return ()
    if name not in handlers:
        raise Problem(
            f"there is no failure handler {quote(name)}. {suggest(name, handlers)}", path=("failure_handler",)
        )
    return handlers[name]


def _rank(requirement: Requirement, method: str) -> tuple[float, ...]:
    """The sort key of jobs: those that request most go first."""
    if method == "none":
        return ()
    amounts = {
        "gpus": requirement.gpus,
        "runtime": requirement.runtime_seconds,
        "memory": requirement.memory_bytes,
    }
    return tuple(-float(amounts[name] or 0) for name in method.split("_"))


def _retry(spec: RetrySpec) -> Retry:
    return Retry(
        times=spec.times,
        on=frozenset(cause for cause in spec.on if isinstance(cause, str)),
        exit_codes=frozenset(cause for cause in spec.on if isinstance(cause, int)),
        memory_factor=spec.grow.memory,
        runtime_factor=spec.grow.runtime,
    )


def _container(container: str | ContainerSpec | None) -> dict[str, Any] | None:
    if container is None:
        return None
    if isinstance(container, str):
        return {"image": container}
    options = container.model_dump(exclude_none=True)
    if "volumes" in options:
        options["mounts"] = options.pop("volumes")
    return options


def check_variable(name: str) -> None:
    if not name or "=" in name or "\0" in name:
        raise Problem(f"{quote(name)} cannot be the name of a variable")


def _check_no_nul(*texts: str) -> None:
    if any("\0" in text for text in texts):
        raise Problem("has a NUL character")
