"""The keys under which a spec asks for something, and the fields of a `Requirement` they are for."""

from __future__ import annotations

from collections.abc import Mapping

from jobmeter.model import Requirement

ASKED = "resource_requirements"
FIELDS = {"cpus": "cpus", "memory": "memory_bytes", "runtime": "runtime_seconds", "gpus": "gpus"}
SPELLINGS = {"cpus": ("cpus", "num_cpus"), "memory": ("memory",), "runtime": ("runtime",), "gpus": ("gpus", "num_gpus")}


def wanted(sizes: Mapping[str, Requirement], step: str, field: str) -> float | None:
    """What `sizes` says of a step's field, by the name it has in specs."""
    size = sizes.get(step)
    value: float | None = None if size is None else getattr(size, FIELDS[field])
    return value
