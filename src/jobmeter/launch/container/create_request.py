"""The request that creates a container, in the form of Docker's API, which Podman's API follows."""

from __future__ import annotations

from typing import Any

from jobmeter.launch.container.spec import ContainerOptions, Gpus, Mount
from jobmeter.model import Requirement


def create_body(
    options: ContainerOptions,
    command: list[str],
    *,
    requirement: Requirement,
    parent: str | None,
    labels: dict[str, str],
    stdin: bool,
) -> dict[str, Any]:
    """The body of the request; `requirement` sets limits. Absent fields are left to the image or container runtime."""
    host: dict[str, Any] = {
        # Output is forwarded as it is written; a second copy would only fill the container runtime's disk.
        "LogConfig": {"Type": "none", "Config": {}},
        "AutoRemove": False,  # its state is read after its end
        **_limits(requirement),
    }
    if parent is not None:
        host["CgroupParent"] = parent
    if options.network is not None:
        host["NetworkMode"] = options.network
    if options.mounts:
        host["Mounts"] = [_mount(mount) for mount in options.mounts]
    if options.gpus is not None:
        host["DeviceRequests"] = [_device_request(options.gpus)]
    body: dict[str, Any] = {
        "Image": options.image,
        "Labels": labels,
        "Env": [f"{name}={value}" for name, value in options.environment.items()],
        "Tty": False,
        "OpenStdin": stdin,
        "StdinOnce": stdin,
        "AttachStdin": stdin,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": host,
    }
    if command:
        body["Cmd"] = command
    if options.entrypoint is not None:
        body["Entrypoint"] = [options.entrypoint]
    if options.directory is not None:
        body["WorkingDir"] = options.directory
    if options.user is not None:
        body["User"] = options.user
    return body


def _limits(requirement: Requirement) -> dict[str, int]:
    limits = {}
    if requirement.cpus is not None:
        limits["NanoCpus"] = round(requirement.cpus * 1e9)
    if requirement.memory_bytes is not None:
        # `MemorySwap` is memory and swap together: if it were more than memory, the container would go on in swap.
        limits |= {"Memory": requirement.memory_bytes, "MemorySwap": requirement.memory_bytes}
    return limits


def _mount(mount: Mount) -> dict[str, Any]:
    kind = "volume" if mount.is_volume else "bind"
    return {"Type": kind, "Source": mount.source, "Target": mount.target, "ReadOnly": mount.read_only}


def _device_request(gpus: Gpus) -> dict[str, Any]:
    return {"Driver": "", "Count": gpus.number, "DeviceIDs": list(gpus.ids) or None, "Capabilities": [["gpu"]]}
