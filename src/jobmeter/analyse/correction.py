"""What a job that used more than it requested must request, so that the same run again would be within it."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from jobmeter.analyse.check import Line
from jobmeter.analyse.estimate import BEYOND_LIMIT
from jobmeter.analyse.resource import CPU, MEMORY, Resource
from jobmeter.analyse.rounding import round_memory, round_runtime
from jobmeter.model import Requirement

ABOVE = 1.1
"""At least so many times what was used is requested."""


def corrections(violations: Iterable[Line], advised: Requirement, requested: Requirement) -> Requirement:
    """What to request of the resources that were over-used; None for the others, which stay as they are.

    It is what is advised, above everything in the violations, and never less than is requested already.
    """
    needs: dict[Resource, float] = {}
    for line in violations:
        above = BEYOND_LIMIT if line.cause else 1.0 if line.resource is CPU else ABOVE
        needs[line.resource] = max(needs.get(line.resource, 0.0), line.used / line.resource.each * above)
    amounts = {}
    for resource, need in needs.items():
        advice, today = getattr(advised, resource.field) or 0, getattr(requested, resource.field) or 0
        if resource is CPU:
            amounts[resource.field] = max(advice or ceil(need), today)
        else:
            rounded = round_memory(need) if resource is MEMORY else round_runtime(need)
            amounts[resource.field] = max(rounded, advice, today)
    return Requirement(**amounts)
