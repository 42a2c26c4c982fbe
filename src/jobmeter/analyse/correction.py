"""What a job that used more than it asked for must ask for, so that the same run again would be within it."""

from __future__ import annotations

from collections.abc import Iterable

from jobmeter.analyse.bounds import BEYOND_LIMIT
from jobmeter.analyse.check import CPU, Line
from jobmeter.analyse.rounding import round_memory, round_runtime
from jobmeter.model import Requirement

ABOVE = 1.1
"""At least so many times what was used is asked for."""


def corrections(violations: Iterable[Line], advised: Requirement, asked: Requirement) -> Requirement:
    """What to ask for of the resources that were over-used; None for the others, which stay as they are.

    It is what is advised, above everything in the violations, and never less than is asked for already.
    """
    needs: dict[str, float] = {}
    for line in violations:
        above = BEYOND_LIMIT if line.cause else 1.0 if line.resource is CPU else ABOVE
        needs[line.resource.key] = max(needs.get(line.resource.key, 0.0), line.used / line.resource.each * above)
    memory, cpus, runtime = needs.get("memory"), needs.get("cpus"), needs.get("runtime")
    return Requirement(
        None if cpus is None else max(advised.cpus or -(-cpus // 1), asked.cpus or 0),
        None if memory is None else max(round_memory(memory), advised.memory_bytes or 0, asked.memory_bytes or 0),
        None
        if runtime is None
        else max(round_runtime(runtime), advised.runtime_seconds or 0, asked.runtime_seconds or 0),
    )
