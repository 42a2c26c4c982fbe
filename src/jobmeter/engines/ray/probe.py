"""Reads what a node has. Sent to the node as code, so that it also works where jobmeter is not installed."""

from __future__ import annotations

from typing import Any


def probe_node(runtimes: list[str]) -> dict[str, Any]:
    """The versions of what the node must have, and which of these container runtimes answer there."""
    import platform

    import ray

    facts: dict[str, Any] = {"python": platform.python_version(), "ray": ray.__version__, "runtimes": []}
    try:
        from jobmeter import __version__
        from jobmeter.engines.ray.protocol import PROTOCOL

        facts |= {"jobmeter": __version__, "protocol": PROTOCOL}
    except ImportError as error:
        return {**facts, "missing": str(error)}
    if runtimes:
        from jobmeter.errors import JobmeterError
        from jobmeter.launch.container.runtime import open_runtime

        for runtime in runtimes:
            try:
                open_runtime(runtime).close()
            except JobmeterError:
                continue
            facts["runtimes"].append(runtime)
    return facts
