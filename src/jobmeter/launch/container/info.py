"""What an engine says of a container that is there, in base units."""

from __future__ import annotations

from typing import Any

from jobmeter.errors import UsageError
from jobmeter.launch.container.client import EngineRefused
from jobmeter.launch.container.runtime import Engine
from jobmeter.model import Requirement


def find_container(engine: Engine, name: str) -> dict[str, Any]:
    """All the engine says of the container with this name, id or beginning of one; UsageError when there is none."""
    try:
        return engine.inspect(name)
    except EngineRefused as refused:
        if refused.status != 404:
            raise
        hint = f"`{engine.name.lower()} ps --all` lists those there are."
        raise UsageError(f"{engine.name} has no container {name!r}. {hint}") from None


def running_container(engine: Engine, name: str) -> dict[str, Any]:
    """The same for one that runs; UsageError when it does not."""
    told = find_container(engine, name)
    if not told["State"].get("Running"):
        raise UsageError(f"the container {name!r} does not run: it is {told['State'].get('Status', 'not started')}")
    return told


def limits(told: dict[str, Any]) -> Requirement:
    """What it may use of CPU and memory; engines write 0 for as much as there is."""
    host = told.get("HostConfig") or {}
    cpus = host.get("NanoCpus", 0) / 1e9
    if not cpus and host.get("CpuQuota", 0) > 0:
        cpus = host["CpuQuota"] / (host.get("CpuPeriod") or 100_000)
    return Requirement(cpus or None, host.get("Memory") or None)


def kept_limits(taken: Requirement) -> list[str]:
    """Which of its limits the kernel keeps: those that its engine has set."""
    return [name for name, limit in (("memory", taken.memory_bytes), ("cpus", taken.cpus)) if limit is not None]


def describe(engine: Engine, told: dict[str, Any]) -> dict[str, Any]:
    """What people ask of a container first. What is not known, or not limited, is absent."""
    state, host, config = told["State"], told.get("HostConfig") or {}, told.get("Config") or {}
    entry: dict[str, Any] = {
        "id": told["Id"],
        "name": str(told.get("Name", "")).lstrip("/"),
        "engine": f"{engine.name} {engine.version}",
        "image": config.get("Image") or told.get("Image"),
        "command": [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])],
        "created": told.get("Created"),
        "status": state.get("Status"),
        "pid": state.get("Pid") or None,
        "started": _moment(state.get("StartedAt")),
        "ended": None if state.get("Running") else _moment(state.get("FinishedAt")),
        "exit_code": None if state.get("Running") or not _moment(state.get("FinishedAt")) else state.get("ExitCode"),
        "oom_killed": state.get("OOMKilled") or None,
        "limits": limits(told).asked(),
        "network": host.get("NetworkMode") or None,
        "run": (config.get("Labels") or {}).get("jobmeter.run"),
    }
    return {name: value for name, value in entry.items() if value is not None}


def _moment(text: str | None) -> str | None:
    """A time, unless it is in the year 1, which is never."""
    return None if not text or text.startswith("0001") else text
