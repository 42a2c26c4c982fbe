"""What a job that used more than it asked for must ask for, so that the same run again would be within it."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from jobmeter.analyse.bounds import BEYOND_LIMIT
from jobmeter.analyse.check import CPU, MEMORY, Line, Resource
from jobmeter.analyse.rounding import round_memory, round_runtime
from jobmeter.model import Requirement

ABOVE = 1.1
"""At least so many times what was used is asked for."""


def corrections(violations: Iterable[Line], advised: Requirement, asked: Requirement) -> Requirement:
    """What to ask for of the resources that were over-used; None for the others, which stay as they are.

    It is what is advised, above everything in the violations, and never less than is asked for already.
    """
    needs: dict[Resource, float] = {}
    for line in violations:
        above = BEYOND_LIMIT if line.cause else 1.0 if line.resource is CPU else ABOVE
        needs[line.resource] = max(needs.get(line.resource, 0.0), line.used / line.resource.each * above)
    found = {}
    for resource, need in needs.items():
        told, today = getattr(advised, resource.field) or 0, getattr(asked, resource.field) or 0
        if resource is CPU:
            found[resource.field] = max(told or ceil(need), today)
        else:
            rounded = round_memory(need) if resource is MEMORY else round_runtime(need)
            found[resource.field] = max(rounded, told, today)
    return Requirement(**found)
