"""What a job that used more than it requested must request, so that the same run would stay within its request."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Any

from jobmeter.analyse.overuse import Verdict, cpu_step
from jobmeter.analyse.resource import CPU, GPU, MEMORY, Resource
from jobmeter.analyse.rounding import round_memory, round_runtime
from jobmeter.analyse.size.observation import BEYOND_LIMIT
from jobmeter.model import Requirement

ABOVE = 1.1
"""Factor on what was used, where the advice is lower: the advice may leave out an old run that took long."""


def corrections(violations: Iterable[Verdict], advised: Requirement, requested: Requirement) -> Requirement:
    """What to request of the over-used resources; None for the others, which stay as they are.

    This is the advised amount. If there is none, or a violation used as much memory or time, it is the most that was
    used, rounded up, for memory and time with a margin. It is never less than what is requested already.
    """
    most_used: dict[Resource, float] = {}
    met: set[Resource] = set()
    for verdict in violations:
        used = verdict.used / verdict.resource.each
        most_used[verdict.resource] = max(most_used.get(verdict.resource, 0.0), used)
        met |= {verdict.resource} if verdict.cause else set()
    amounts: dict[str, Any] = {}
    for resource, used in most_used.items():
        advice, today = getattr(advised, resource.field) or 0, getattr(requested, resource.field) or 0
        if not advice or (resource not in (CPU, GPU) and advice <= used):
            advice = _above(used, resource, today, BEYOND_LIMIT if resource in met else ABOVE)
        amounts[resource.field] = max(advice, today)
    return Requirement(**amounts)


def _above(used: float, resource: Resource, today: float, times: float) -> float:
    if resource is GPU:
        return ceil(used)
    if resource is CPU:
        step = cpu_step(today)
        return round(ceil(used / step) * step, 1)
    return round_memory(used * times) if resource is MEMORY else round_runtime(used * times)
