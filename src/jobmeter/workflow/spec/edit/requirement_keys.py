"""The keys of requirements in a spec, and the fields of a `Requirement` they are for."""

from __future__ import annotations

from collections.abc import Mapping

from jobmeter.model import Requirement

REQUIREMENTS_KEY = "resource_requirements"
FIELDS = {"cpus": "cpus", "memory": "memory_bytes", "runtime": "runtime_seconds", "gpus": "gpus"}
SPELLINGS = {"cpus": ("cpus", "num_cpus"), "memory": ("memory",), "runtime": ("runtime",), "gpus": ("gpus", "num_gpus")}


def new_size(sizes: Mapping[str, Requirement], step: str, field: str) -> float | None:
    """The new size for a field of a step; `field` is its name in specs. None if the field stays as it is."""
    size = sizes.get(step)
    value: float | None = None if size is None else getattr(size, FIELDS[field])
    return value
