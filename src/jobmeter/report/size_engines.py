"""Sizes for workflow engines that retry by themselves: requests that grow with the attempt, and with the input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil

from jobmeter.analyse.resource import CPU, MEMORY, RUNTIME
from jobmeter.analyse.size.advice import Advice, Law
from jobmeter.analyse.size.observation import BYTES, READ_BYTES
from jobmeter.terminal import printable

_MIB = 2**20
_RETRIES = 3
_MIB_LEAST = 8


def nextflow(advised: Sequence[Advice]) -> str:
    """A `process` scope with a `withName` block for each job."""
    lines = ["process {"]
    for advice in advised:
        name = advice.name.replace("\\", "\\\\").replace("'", "\\'")
        lines += [f"    // {printable(advice.name)}", f"    withName: '{name}' {{"]
        lines += [f"        {line}" for line in _nextflow_lines(advice)]
        lines += ["    }"]
    return "\n".join([*lines, "}"])


def _nextflow_lines(advice: Advice) -> list[str]:
    memory, cpus, runtime = (advice.amount(resource) for resource in (MEMORY, CPU, RUNTIME))
    lines = []
    if memory and (law := _of_input(memory.law)):
        formula = _formula(law, "inputBytes", "Math.pow(inputBytes, %s)")
        size = f"Math.max({formula}, {_MIB_LEAST}d * 1048576) as long"
        lines += [
            "// inputs that are named otherwise: replace `reads` by their name",
            f"memory {{ def inputBytes = [reads].flatten()*.size().sum(); new MemoryUnit({size}) * task.attempt }}",
        ]
    elif memory:
        lines.append(f"memory {{ {_mib(memory.request)}.MB * task.attempt }}")
    if cpus:
        lines.append(f"cpus {ceil(cpus.request)}")
    if runtime:
        lines.append(f"time {{ {ceil(runtime.request)}.s * task.attempt }}")
    if memory or runtime:
        lines += ["errorStrategy { task.exitStatus in [137, 140] ? 'retry' : 'finish' }", f"maxRetries {_RETRIES}"]
    return lines


def snakemake(advised: Sequence[Advice]) -> str:
    """The `threads` and `resources` of a rule for each job; `retries` makes Snakemake start further attempts."""
    blocks = []
    for advice in advised:
        memory, cpus, runtime = (advice.amount(resource) for resource in (MEMORY, CPU, RUNTIME))
        lines = [f"# {printable(advice.name)}", f"rule {_identifier(advice.name)}:"]
        lines += [f"    threads: {ceil(cpus.request)}"] if cpus else []
        resources = []
        if memory and (law := _of_input(memory.law)):
            formula = _formula(law, "input.size", "input.size ** %s")
            size = f"max({formula}, {_MIB_LEAST} << 20)"
            resources.append(f"mem_mib=lambda wildcards, input, attempt: int({size} / 2**20 + 1) * attempt,")
        elif memory:
            resources.append(f"mem_mib=lambda wildcards, attempt: {_mib(memory.request)} * attempt,")
        if runtime:
            minutes = ceil(runtime.request / 60)
            resources.append(f"runtime=lambda wildcards, attempt: {minutes} * attempt,")
        if resources:
            lines += ["    retries: " + str(_RETRIES), "    resources:", *(f"        {each}" for each in resources)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _of_input(law: Law | None) -> Law | None:
    """The law, if it depends on the size of the inputs: an engine knows nothing else of a task before it starts."""
    return law if law is not None and law.feature in (BYTES, READ_BYTES) else None


def _formula(law: Law, name: str, power: str) -> str:
    term = name if law.power == 1 else power % f"{law.power:.6g}"
    return f"{law.base:.6g} + {law.scale:.6g} * {term}"


def _mib(amount: float) -> int:
    return ceil(amount / _MIB)


def _identifier(name: str) -> str:
    word = re.sub(r"\W+", "_", name).strip("_") or "job"
    return word if word[0].isalpha() or word[0] == "_" else f"rule_{word}"
