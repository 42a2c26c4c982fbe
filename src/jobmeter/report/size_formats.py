"""Sizes in the formats of other tools: Slurm, Docker, Compose, Kubernetes, Ray, workflow engines, and our own specs."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Sequence
from math import ceil

from jobmeter.analyse.resource import CPU, GPU, MEMORY, RUNTIME
from jobmeter.analyse.rounding import round_memory
from jobmeter.analyse.size.advice import Advice, Amount
from jobmeter.report.size_engines import nextflow, snakemake
from jobmeter.terminal import printable

_MIB = 2**20


def render_sizes(form: str, advised: Sequence[Advice]) -> str:
    """The advice in one of `FORMATS`, with a comment that names each job."""
    return FORMATS[form](advised)


def _amounts(advice: Advice) -> tuple[Amount | None, Amount | None, Amount | None]:
    """Memory, CPUs and runtime."""
    by_key = {amount.resource.key: amount for amount in advice.amounts}
    return by_key.get(MEMORY.key), by_key.get(CPU.key), by_key.get(RUNTIME.key)


def _gpus(advice: Advice) -> int:
    """How many GPUs to request; 0 also if that is not known."""
    return next((int(amount.request) for amount in advice.amounts if amount.resource is GPU), 0)


def _blocks(advised: Sequence[Advice], lines: Callable[[Advice], list[str]], between: str = "\n") -> str:
    blocks = ["\n".join([_comment(advice), *lines(advice)]) for advice in advised]
    return f"\n{between}".join(blocks)


def _comment(advice: Advice) -> str:
    return f"# {printable(advice.name)}"


def _mib(amount: float) -> int:
    return ceil(amount / _MIB)


def _number(amount: float) -> str:
    return f"{amount:.10g}"


def slurm_time(seconds: float) -> str:
    """`HH:MM:SS`, or `D-HH:MM:SS` from a day on."""
    minutes, second = divmod(ceil(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hour:02d}:{minute:02d}:{second:02d}"


def iso_duration(seconds: float) -> str:
    """`PT2H45M`."""
    minutes, second = divmod(ceil(seconds), 60)
    hours, minute = divmod(minutes, 60)
    parts = ((hours, "H"), (minute, "M"), (second, "S"))
    return "PT" + ("".join(f"{number}{letter}" for number, letter in parts if number) or "0S")


def memory_word(amount: float) -> str:
    """`8g`, or `1536m` if it is not a whole number of GiB."""
    mib = _mib(amount)
    return f"{mib // 1024}g" if mib % 1024 == 0 else f"{mib}m"


def _slurm(advised: Sequence[Advice]) -> str:
    def lines(advice: Advice) -> list[str]:
        memory, cpus, runtime = _amounts(advice)
        gpus = _gpus(advice)
        return [
            f"#SBATCH {option}"
            for option in (
                f"--mem={_mib(memory.request)}M" if memory else "",
                f"--cpus-per-task={ceil(cpus.request)}" if cpus else "",
                f"--time={slurm_time(runtime.request)}" if runtime else "",
                f"--gpus={gpus}" if gpus else "",
            )
            if option
        ]

    return _blocks(advised, lines)


def _docker(advised: Sequence[Advice]) -> str:
    def lines(advice: Advice) -> list[str]:
        memory, cpus, _ = _amounts(advice)
        options = [f"--memory={memory_word(memory.request)}"] if memory else []
        options += [f"--cpus={_number(cpus.request)}"] if cpus else []
        options += [f"--gpus={gpus}"] if (gpus := _gpus(advice)) else []
        return [" ".join(options)]

    return _blocks(advised, lines)


def _compose(advised: Sequence[Advice]) -> str:
    """Limits are the advised amounts; reservations are what a usual run needs."""
    lines = ["services:"]
    for advice in advised:
        memory, cpus, _ = _amounts(advice)
        usual = None if memory is None else min(round_memory(memory.usual), int(memory.request))
        mean = None if cpus is None else _tenths(cpus.usual)
        lines += [f"  {_comment(advice)}", f"  {_service(advice.name)}:", "    deploy:", "      resources:"]
        for part, size, cores in (
            ("limits", memory and memory.request, cpus and _number(cpus.request)),
            ("reservations", usual, mean),
        ):
            lines.append(f"        {part}:")
            lines += [f'          cpus: "{cores}"'] if cores else []
            lines += [f"          memory: {_mib(size)}M"] if size else []
        if gpus := _gpus(advice):
            lines += ["          devices:", "            - driver: nvidia", f"              count: {gpus}",
                      "              capabilities: [gpu]"]  # fmt: skip
    return "\n".join(lines)


def _service(name: str) -> str:
    word = re.sub(r"[^a-zA-Z0-9._]+", "-", name).strip("-._")
    # YAML would not read a number, or `no`, as a name.
    return word if re.fullmatch(r"[a-zA-Z][\w.-]+", word) and word.lower() not in _YAML_WORDS else json.dumps(word)


_YAML_WORDS = ("yes", "no", "on", "off", "true", "false", "null")


def _tenths(cpus: float) -> str:
    return _number(max(ceil(cpus * 10), 1) / 10)


def _k8s(advised: Sequence[Advice]) -> str:
    """Memory is requested as it is limited: a container that uses more than it requested is the first to be evicted."""

    def lines(advice: Advice) -> list[str]:
        memory, cpus, runtime = _amounts(advice)
        lines = ["resources:"]
        for part in ("requests", "limits"):
            lines.append(f"  {part}:")
            if cpus:
                lines.append(f'    cpu: "{_tenths(cpus.usual) if part == "requests" else _number(cpus.request)}"')
            lines += [f"    memory: {_mib(memory.request)}Mi"] if memory else []
            lines += [f"    nvidia.com/gpu: {gpus}"] if (gpus := _gpus(advice)) else []
        deadline = [f"# in the spec of its Job: activeDeadlineSeconds: {ceil(runtime.request)}"] if runtime else []
        return lines + deadline

    return _blocks(advised, lines, between="---\n")


def _ray(advised: Sequence[Advice]) -> str:
    def lines(advice: Advice) -> list[str]:
        memory, cpus, _ = _amounts(advice)
        options = [f"num_cpus={_number(cpus.request)}"] if cpus else []
        options += [f"num_gpus={gpus}"] if (gpus := _gpus(advice)) else []
        options += [f"memory={_mib(memory.request)} * 2**20"] if memory else []
        name = advice.name if advice.name.isidentifier() and not keyword.iskeyword(advice.name) else "task"
        return [f"{name}.options({', '.join(options)})"]

    return _blocks(advised, lines)


def _yaml(advised: Sequence[Advice]) -> str:
    lines = ["resource_requirements:"]
    for advice in advised:
        memory, cpus, runtime = _amounts(advice)
        lines += [f"  {_comment(advice)}", f"  - name: {json.dumps(advice.name)}"]
        lines += [f"    num_cpus: {_number(cpus.request)}"] if cpus else []
        lines += [f"    memory: {memory_word(memory.request)}"] if memory else []
        lines += [f"    runtime: {iso_duration(runtime.request)}"] if runtime else []
        lines += [f"    num_gpus: {gpus}"] if (gpus := _gpus(advice)) else []
    return "\n".join(lines)


FORMATS: dict[str, Callable[[Sequence[Advice]], str]] = {
    "yaml": _yaml,
    "slurm": _slurm,
    "nextflow": nextflow,
    "snakemake": snakemake,
    "docker": _docker,
    "compose": _compose,
    "k8s": _k8s,
    "ray": _ray,
}
"""Name that `size --format` takes → the function that renders it."""
