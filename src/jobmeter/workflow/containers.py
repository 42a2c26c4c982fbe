"""Jobs that run in containers: their container options in the spec, as plain values that any engine can take."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from jobmeter.errors import UsageError
from jobmeter.launch.container.spec import (
    ContainerOptions,
    Mount,
    check,
    parse_gpus,
    parse_mount,
    plain_options,
)
from jobmeter.workflow.plan import Job


def container_options(job: Job, environment: Mapping[str, str] = {}) -> dict[str, Any]:
    """The container options of a job that has a container. Raises UsageError if those in the spec are not valid.

    Unless `mount_cwd` is false, the job's directory is mounted at the same path and is the working directory, so that a
    command finds its files as it would without a container. `environment` is added for one attempt.
    """
    spec = job.container or {}
    try:
        mounts = [_mount(entry, job.directory) for entry in spec.get("mounts", ())]
        if spec.get("mount_cwd", True) and all(mount.target != job.directory for mount in mounts):
            mounts.append(Mount(job.directory, job.directory))
        options = ContainerOptions(
            image=spec["image"],
            engine=spec.get("engine", "auto"),
            mounts=tuple(mounts),
            environment={**job.environment, **spec.get("env", {}), **environment},
            directory=job.directory if spec.get("mount_cwd", True) else None,
            user=spec.get("user"),
            network=spec.get("network"),
            gpus=parse_gpus(spec["gpus"]) if "gpus" in spec else None,
            entrypoint=spec["entrypoint"][0] if spec.get("entrypoint") else None,
            pull=spec.get("pull", "missing"),
        )
        check(options)
    except UsageError as error:
        raise UsageError(f"job {job.name!r}: container: {error}") from None
    return plain_options(options)


def container_command(job: Job) -> list[str]:
    """What the container executes after the first word of its entry point: the other words of it, then the command."""
    entrypoint: list[str] = (job.container or {}).get("entrypoint") or []
    return [*entrypoint[1:], *job.command]


def container_runtimes(jobs: Iterable[Job]) -> set[str]:
    """The container runtimes that jobs name. Raises UsageError if the container options of a job are not valid."""
    return {container_options(job)["engine"] for job in jobs if job.container is not None}


def _mount(entry: Any, directory: str) -> Mount:
    """Parse `SOURCE:TARGET[:ro]`, or a mapping; a relative source path is relative to the job's directory."""
    if isinstance(entry, str):
        source, separator, rest = entry.partition(":")
        return parse_mount(f"{_absolute(source, directory)}{separator}{rest}")
    unknown = set(entry) - {"source", "target", "read_only"}
    if unknown or not {"source", "target"} <= set(entry):
        there = ", ".join(sorted(entry)) or "nothing"
        raise UsageError(f"a mount has source, target and read_only, and here is {there}")
    mode = "ro" if str(entry.get("read_only", "")).lower() in ("true", "yes", "1") else "rw"
    return parse_mount(f"{_absolute(entry['source'], directory)}:{entry['target']}:{mode}")


def _absolute(source: str, directory: str) -> str:
    """A source path made absolute from the job's directory; any other source is the name of a volume and stays."""
    if "/" in source or source in (".", ".."):
        return os.path.normpath(os.path.join(directory, os.path.expanduser(source)))
    return source
