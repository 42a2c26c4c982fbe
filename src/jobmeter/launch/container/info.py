"""What a container runtime reports about a container, in base units."""

from __future__ import annotations

from typing import Any

from jobmeter.errors import UsageError
from jobmeter.launch.container.client import RequestRefused
from jobmeter.launch.container.runtime import ContainerRuntime
from jobmeter.model import Requirement


def find_container(runtime: ContainerRuntime, name: str) -> dict[str, Any]:
    """The inspection of the container with this name, id or prefix of an id. Raises UsageError if there is none."""
    try:
        return runtime.inspect(name)
    except RequestRefused as refused:
        if refused.status != 404:
            raise
        hint = f"`{runtime.name.lower()} ps --all` lists all containers."
        raise UsageError(f"{runtime.name} has no container {name!r}. {hint}") from None


def running_container(runtime: ContainerRuntime, name: str) -> dict[str, Any]:
    """The same for a container that must run. Raises UsageError if it does not."""
    inspection = find_container(runtime, name)
    state = inspection["State"]
    if not state.get("Running"):
        raise UsageError(f"the container {name!r} does not run: it is {state.get('Status', 'not started')}")
    return inspection


def limits(inspection: dict[str, Any]) -> Requirement:
    """The CPU and memory limits of a container; container runtimes write 0 for no limit."""
    host = inspection.get("HostConfig") or {}
    cpus = host.get("NanoCpus", 0) / 1e9
    if not cpus and host.get("CpuQuota", 0) > 0:
        cpus = host["CpuQuota"] / (host.get("CpuPeriod") or 100_000)
    return Requirement(cpus or None, host.get("Memory") or None)


def enforced_limits(limits_set: Requirement) -> list[str]:
    """Which limits the kernel enforces: those that the container runtime has set."""
    pairs = (("memory", limits_set.memory_bytes), ("cpus", limits_set.cpus))
    return [name for name, limit in pairs if limit is not None]


def describe(runtime: ContainerRuntime, inspection: dict[str, Any]) -> dict[str, Any]:
    """The description of a container. What is unknown, or not limited, is absent."""
    state, host, config = inspection["State"], inspection.get("HostConfig") or {}, inspection.get("Config") or {}
    entry: dict[str, Any] = {
        "id": inspection["Id"],
        "name": str(inspection.get("Name", "")).lstrip("/"),
        "engine": f"{runtime.name} {runtime.version}",
        "image": config.get("Image") or inspection.get("Image"),
        "command": [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])],
        "created": inspection.get("Created"),
        "status": state.get("Status"),
        "pid": state.get("Pid") or None,
        "started": _moment(state.get("StartedAt")),
        "ended": None if state.get("Running") else _moment(state.get("FinishedAt")),
        "exit_code": None if state.get("Running") or not _moment(state.get("FinishedAt")) else state.get("ExitCode"),
        "oom_killed": state.get("OOMKilled") or None,
        "limits": limits(inspection).requested(),
        "network": host.get("NetworkMode") or None,
        "run": (config.get("Labels") or {}).get("jobmeter.run"),
    }
    return {name: value for name, value in entry.items() if value is not None}


def _moment(text: str | None) -> str | None:
    """The time; None for one in the year 1, which means never."""
    return None if not text or text.startswith("0001") else text
