"""Containers that a killed jobmeter left behind: identified by their labels."""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

from jobmeter.errors import LaunchError
from jobmeter.kernel.cgroup.parent import remove_empty_parents
from jobmeter.kernel.machine import Machine, read_text
from jobmeter.kernel.procfs import read_stat
from jobmeter.launch.container.client import DOCKER_ADDRESS
from jobmeter.launch.container.podman import podman_address
from jobmeter.launch.container.runtime import ContainerRuntime, ListedContainer, open_runtime

RUN = "jobmeter.run"
_PATIENCE = 2.0
_PID, _START, _HOST, _BOOT = "jobmeter.pid", "jobmeter.start", "jobmeter.host", "jobmeter.boot"


def labels(run_id: str, machine: Machine) -> dict[str, str]:
    """The labels of a container: its run, and the process that follows it."""
    owner = {RUN: run_id, _PID: str(os.getpid()), _HOST: _host(machine), _BOOT: _boot(machine)}
    try:
        # Pids are reused: the start time shows whether that process still runs.
        owner[_START] = str(read_stat(machine, os.getpid()).start)
    except (OSError, ValueError):
        pass  # no /proc here
    return owner


def leftovers(runtime: ContainerRuntime, machine: Machine) -> list[ListedContainer]:
    """The containers whose jobmeter no longer runs; not those made on another machine, for which that is unknown."""
    return [container for container in runtime.labelled(RUN) if _is_left(container.labels, machine)]


class RuntimeCheck(NamedTuple):
    """What `jobmeter doctor` shows about one container runtime."""

    runtime: str
    description: str = ""
    why_not: str | None = None  # why it cannot be used
    leftovers: tuple[str, ...] = ()  # names of containers


def check_runtimes(machine: Machine) -> list[RuntimeCheck]:
    """Check Docker and Podman. A Podman service that does not run is not started."""
    return [_check_runtime(name, machine) for name in ("docker", "podman")]


def _check_runtime(name: str, machine: Machine) -> RuntimeCheck:
    if name == "podman" and podman_address() is None:
        if podman_address(may_start=True) is None:
            return RuntimeCheck(name, why_not="not installed")
        return RuntimeCheck(name, "installed; its service is started when it is needed")
    try:
        runtime = open_runtime(name)
    except LaunchError as reason:
        return RuntimeCheck(name, why_not=str(reason))
    try:
        why = runtime.why_no_parent()
        accounts = (
            "figures of containers are complete to their end" if why is None else f"{why}: figures may be at least"
        )
        names = tuple(container.name for container in leftovers(runtime, machine))
        return RuntimeCheck(name, f"{runtime.name} {runtime.version} at {runtime.address}, {accounts}", None, names)
    except LaunchError as reason:
        return RuntimeCheck(name, why_not=str(reason))
    finally:
        runtime.close()


class Cleanup(NamedTuple):
    """What was removed, and what could not be."""

    containers: list[str]
    groups: list[str]
    failures: list[str]
    unchecked: list[str]  # container runtimes that do not answer, and why


def clean(machine: Machine) -> Cleanup:
    """Remove the containers that killed runs left, in every container runtime that answers, and their cgroups."""
    done = Cleanup([], [], [], [])
    for name in ("docker", "podman"):
        try:
            runtime = open_runtime(name)
        except LaunchError as reason:
            if is_installed(name):
                done.unchecked.append(f"{name} was not checked: {reason}")
            continue
        try:
            _clean_runtime(runtime, machine, done)
        except LaunchError as reason:
            done.unchecked.append(f"{name} was not checked: {reason}")
        finally:
            runtime.close()
    done.groups.extend(remove_empty_parents(machine, patience=_PATIENCE))
    return done


def is_installed(name: str) -> bool:
    """Whether the container runtime is on this machine, or an address of it was set."""
    if name == "podman":
        return podman_address(may_start=True) is not None
    socket = DOCKER_ADDRESS.removeprefix("unix://")
    return bool(os.environ.get("DOCKER_HOST") or os.path.exists(socket) or shutil.which("dockerd"))


def _clean_runtime(runtime: ContainerRuntime, machine: Machine, done: Cleanup) -> None:
    for container in leftovers(runtime, machine):
        try:
            runtime.remove(container.id)
            done.containers.append(container.name)
        except LaunchError as error:
            done.failures.append(f"{container.name}: {error}")


def _is_left(owner: dict[str, str], machine: Machine) -> bool:
    if owner.get(_HOST) != _host(machine):
        return False
    if owner.get(_BOOT) != _boot(machine):
        return True
    try:
        stat = read_stat(machine, int(owner.get(_PID, "")))
    except ValueError:
        return False
    except OSError:
        return True
    return stat.state in "ZX" or owner.get(_START, str(stat.start)) != str(stat.start)


def _host(machine: Machine) -> str:
    """Identifies this machine and, where it can be read, the pid namespace of this process."""
    try:
        return f"{os.uname().nodename} {os.readlink(f'{machine.proc}/self/ns/pid')}"
    except OSError:
        return os.uname().nodename


def _boot(machine: Machine) -> str:
    try:
        return read_text(f"{machine.proc}/sys/kernel/random/boot_id").strip()
    except OSError:
        return ""
