"""One entry under `jobs`, made into its jobs: one, or all of a sweep."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobmeter.errors import quote
from jobmeter.model import Requirement
from jobmeter.suggestion import suggest
from jobmeter.workflow.plan import Job, Retry
from jobmeter.workflow.spec.plan.command import Programs, shell_command
from jobmeter.workflow.spec.plan.job_names import check_name
from jobmeter.workflow.spec.plan.parameters import Filler, Values, combinations, count_combinations, parameter_values
from jobmeter.workflow.spec.read.schema import ContainerSpec, JobSpec, NamedSizes, RetrySpec, Sizes
from jobmeter.workflow.spec.read.spec_errors import Path, Problem


class Draft(NamedTuple):
    """A job whose neighbours are not resolved."""

    job: Job
    entry: int  # the index under `jobs`
    waits_for: tuple[str, ...]  # names, patterns and names of sweeps


class Expansion:
    """The jobs of one entry. Problem, with the path below that entry, for what is wrong with it."""

    def __init__(
        self, entry: int, spec: JobSpec, named: Mapping[str, NamedSizes], directory: str, programs: Programs
    ) -> None:
        self._entry = entry
        self._spec = spec
        self._directory = directory
        self._programs = programs
        self._parameters = {
            name: _at(("parameters", name), parameter_values, name, written)
            for name, written in spec.parameters.items()
        }
        self.count = _at(("parameters",), count_combinations, self._parameters, spec.parameter_mode)
        self._filler = Filler(list(self._parameters))
        self._sizes = _sizes(spec, named)
        self._retry = _retry(spec.retry)
        self._container = _container(spec.container)
        for name in spec.env:
            _at(("env", name), _check_variable, name)

    def drafts(self, number: int) -> Iterator[Draft]:
        """The jobs, numbered from `number`."""
        waits_for = waits_field(self._spec)[1]
        for values in combinations(self._parameters, self._spec.parameter_mode):
            yield Draft(self._job(number, values), self._entry, self._filled(("blocked_by",), waits_for, values))
            number += 1

    def lacking(self) -> list[str]:
        """The parameters that take several values and are not in the name."""
        mentioned = self._filler.mentioned(self._spec.name)
        return [name for name, values in self._parameters.items() if name not in mentioned and len(set(values)) > 1]

    def _job(self, number: int, values: Values) -> Job:
        spec = self._spec
        name = _at(("name",), self._filler.fill, spec.name, values)
        _at(("name",), check_name, name)
        directory = self._place(("cwd",), self._directory, spec.cwd or "", values)
        environment = self._filled_map("env", spec.env, values)
        command, script = _at(("command",), self._command, directory, environment, values)
        return Job(
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
            inputs=tuple([self._place(("inputs",), directory, path, values) for path in spec.inputs]),
            outputs=tuple([self._place(("outputs",), directory, path, values) for path in spec.outputs]),
            retry=self._retry,
            priority=spec.priority,
            labels={**values, **self._filled_map("labels", spec.labels, values)},
            container=_at(("container",), self._filled_deep, self._container, values),
        )

    def _command(self, directory: str, environment: Mapping[str, str], values: Values) -> tuple[list[str], str]:
        spec = self._spec
        if isinstance(spec.command, list):
            words = [self._filler.fill(word, values) for word in spec.command]
            if not words or not words[0]:
                raise Problem("the command is empty")
            _check_no_nul(*words)
            return words, shlex.join(words)
        script = self._filler.fill(spec.command, values)
        _check_no_nul(script)
        programs = None if self._container is not None else self._programs
        return shell_command(script, spec.shell, directory, environment, programs), script.strip("\n")

    def _place(self, field: Path, directory: str, path: str, values: Values) -> str:
        """A path of the spec, absolute."""
        if not path:
            return directory
        filled = _at(field, self._filler.fill, path, values)
        _at(field, _check_no_nul, filled)
        return os.path.normpath(os.path.join(directory, os.path.expanduser(filled)))

    def _filled(self, field: Path, texts: Sequence[str], values: Values) -> tuple[str, ...]:
        return tuple([_at(field, self._filler.fill, text, values) for text in texts])

    def _filled_map(self, field: str, texts: Mapping[str, str], values: Values) -> dict[str, str]:
        return {key: _at((field, key), self._filler.fill, text, values) for key, text in texts.items()}

    def _filled_deep(self, value: Any, values: Values) -> Any:
        if isinstance(value, str):
            return self._filler.fill(value, values)
        if isinstance(value, list):
            return [self._filled_deep(inner, values) for inner in value]
        if isinstance(value, dict):
            return {key: self._filled_deep(inner, values) for key, inner in value.items()}
        return value


def waits_field(spec: JobSpec) -> tuple[str, list[str]]:
    """What a job waits for, and the name of the field that it uses for that."""
    if spec.depends_on is not None:
        return "depends_on", spec.depends_on
    return "blocked_by", spec.blocked_by or []


def _at(path: Path, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `function`; a problem in it is one of the field at `path`."""
    try:
        return function(*arguments)
    except Problem as problem:
        problem.path = (*path, *problem.path)
        raise


def _sizes(spec: JobSpec, named: Mapping[str, NamedSizes]) -> tuple[Requirement, int, str | None]:
    requirement = spec.resource_requirements
    if requirement is None:
        return Requirement(), 0, None
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
    return Requirement(cpus, sizes.memory, sizes.runtime, gpus), gpus or 0, name


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


def _check_variable(name: str) -> None:
    if not name or "=" in name or "\0" in name:
        raise Problem(f"{quote(name)} cannot be the name of a variable")


def _check_no_nul(*texts: str) -> None:
    if any("\0" in text for text in texts):
        raise Problem("has a NUL character")
