"""What a benchmark runs: its variants, each a command with the values of its parameters filled in."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.analyse.bench import counts_workers
from jobmeter.errors import UsageError
from jobmeter.workflow.spec.plan.command import SHELL, Programs, shell_command, split_words
from jobmeter.workflow.spec.plan.parameters import Filler, Values, combinations, parameter_values
from jobmeter.workflow.spec.read.spec_errors import Problem

MOST_VARIANTS = 1000
NO_SHELL = "none"
WORKERS = ("n", "j", "np", "nproc", "jobs", "threads", "workers", "processes", "procs", "cpus", "cores", "ranks")
"""Names of parameters that count workers."""


class Hooks(NamedTuple):
    """Commands before and after the runs, each a text for a shell; None if there is none."""

    setup: str | None = None  # once, before the first run of a variant
    prepare: str | None = None  # before every run
    conclude: str | None = None  # after every run
    cleanup: str | None = None  # once, after the last run of a variant


class Variant(NamedTuple):
    name: str
    text: str  # the command as a person reads it
    command: list[str]  # the words that are executed
    parameters: Values
    hooks: Hooks


class Template(NamedTuple):
    """A command before its parameters are filled in."""

    text: str
    words: list[str] | None  # None: the text is split into words, or passed to a shell


class BenchPlan(NamedTuple):
    variants: list[Variant]
    workers: str | None  # the parameter that counts workers


def make_plan(
    templates: Sequence[Template],
    parameters: dict[str, list[str]],
    hooks: Hooks,
    *,
    shell: str | None = None,
    names: Sequence[str] = (),
    workers: str | None = None,
    in_container: bool = False,
) -> BenchPlan:
    """All variants: each command with each combination of parameters. Raises UsageError if they cannot be run."""
    filler = Filler(list(parameters))
    _check_parameters(templates, parameters, hooks, filler)
    rows = list(combinations(parameters, "product"))
    if len(rows) * len(templates) > MOST_VARIANTS:
        raise UsageError(
            f"--param: this makes {len(rows) * len(templates):,} variants, and {MOST_VARIANTS} is the most"
        )
    if names and len(names) != len(templates):
        raise UsageError(f"--command-name: {len(names)} names for {len(templates)} commands. Give one for each.")
    programs = None if in_container else Programs(os.environ)
    variants = []
    try:
        for number, template in enumerate(templates):
            for values in rows:
                text = _text(template, filler, values)
                variants.append(
                    Variant(
                        _name(names[number] if names else None, text, values, alone=len(templates) == 1),
                        text,
                        _words(template, text, filler, values, shell, programs),
                        values,
                        Hooks(*(None if hook is None else filler.fill(hook, values) for hook in hooks)),
                    )
                )
    except Problem as problem:
        raise UsageError(f"bench: {problem}") from None
    repeated = sorted({each.name for each in variants if sum(other.name == each.name for other in variants) > 1})
    if repeated:
        raise UsageError(f"bench: {repeated[0]!r} is run twice. Name the commands with --command-name.")
    return BenchPlan(variants, _workers(parameters, workers))


def parse_parameter(text: str) -> tuple[str, list[str]]:
    """Parse a parameter with its values: `n=1,2,4` or `n=1:8`. Raises UsageError for anything else."""
    name, separator, written = text.partition("=")
    if not separator:
        raise UsageError(f"{text!r} is not NAME=VALUE,VALUE")
    try:
        values = parameter_values(name, written if ":" in written and "," not in written else written.split(","))
    except Problem as problem:
        raise UsageError(f"{text!r}: {problem}") from None
    if len(set(values)) < len(values):
        raise UsageError(f"{text!r}: a value is there twice")
    return name, values


def _check_parameters(
    templates: Sequence[Template], parameters: dict[str, list[str]], hooks: Hooks, filler: Filler
) -> None:
    texts = [*(template.text for template in templates), *(hook for hook in hooks if hook)]
    used = set().union(*(filler.mentioned(text) for text in texts))
    for name in parameters:
        if name not in used:
            raise UsageError(f"--param: {name!r} is used nowhere. Write {{{name}}} where its value is to stand.")


def _text(template: Template, filler: Filler, values: Values) -> str:
    if template.words is None:
        return filler.fill(template.text, values)
    return shlex.join(filler.fill(word, values) for word in template.words)


def _words(
    template: Template, text: str, filler: Filler, values: Values, shell: str | None, programs: Programs | None
) -> list[str]:
    if template.words is not None:
        words = [filler.fill(word, values) for word in template.words]
        return words if shell in (None, NO_SHELL) else [str(shell), "-c", shlex.join(words)]
    if shell == NO_SHELL:
        return split_words(text)
    return shell_command(text, shell or True, os.getcwd(), {}, programs)


def hook_command(text: str, shell: str | None) -> list[str]:
    """The command line of a hook. A shell runs it, even if the runs themselves have none."""
    return [SHELL if shell in (None, NO_SHELL) else shell, "-c", text]


def _name(given: str | None, text: str, values: Values, *, alone: bool) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in values.items())
    if given is None and alone and parameters:
        return parameters
    name = given or text
    return f"{name} ({parameters})" if given and parameters else name


def _workers(parameters: dict[str, list[str]], named: str | None) -> str | None:
    """The parameter that counts workers: the named one, else the only one of `WORKERS` with fitting values, or None."""
    if named is not None:
        if named not in parameters:
            raise UsageError(f"--workers: there is no parameter {named!r}. Give it with --param {named}=1,2,4")
        if not counts_workers(parameters[named]):
            raise UsageError(f"--workers: the values of {named!r} are not whole numbers above 0")
        return named
    called_so = [name for name in parameters if name.lower() in WORKERS and counts_workers(parameters[name])]
    return called_so[0] if len(called_so) == 1 else None
