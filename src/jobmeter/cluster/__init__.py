"""What a cluster reserves and uses: samplers on its nodes, the sources that read them, and the monitor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from jobmeter.errors import UsageError

if TYPE_CHECKING:
    from jobmeter.cluster.contract import ClusterSource

SOURCES = {
    "local": "jobmeter.cluster.local:LocalSource",
    "ray": "jobmeter.cluster.ray_process:ray_source",
}
"""The engines whose cluster can be watched, and the class, or function, that gives what reads it."""


def load_source(engine: str, address: str | None, store: str, warn: Callable[[str], None]) -> ClusterSource:
    """What reads the cluster of this engine. Raises UsageError if it cannot be watched, or has no address."""
    from importlib import import_module

    if engine not in SOURCES:
        raise UsageError(f"--engine: a cluster of {engine!r} cannot be watched. There are: {', '.join(SOURCES)}.")
    module, _, name = SOURCES[engine].partition(":")
    return cast("ClusterSource", getattr(import_module(module), name)(address, store, warn))
