"""Containers that a jobmeter left behind because it was killed: known by their labels."""

from __future__ import annotations

import os
from typing import NamedTuple

from jobmeter.errors import LaunchError
from jobmeter.kernel.cgroup.parent import sweep_parents
from jobmeter.kernel.machine import Machine, read_text
from jobmeter.kernel.procfs import read_stat
from jobmeter.launch.container.podman import podman_address
from jobmeter.launch.container.runtime import Engine, Found, open_engine

RUN = "jobmeter.run"
_PATIENCE = 2.0
_PID, _START, _HOST, _BOOT = "jobmeter.pid", "jobmeter.start", "jobmeter.host", "jobmeter.boot"


def labels(run_id: str, machine: Machine) -> dict[str, str]:
    """Whose container it is: the run, and the process that looks after it."""
    found = {RUN: run_id, _PID: str(os.getpid()), _HOST: _host(machine), _BOOT: _boot(machine)}
    try:
        # Pids are reused: with its start time it is known whether that process still lives.
        found[_START] = str(read_stat(machine, os.getpid()).start)
    except (OSError, ValueError):
        pass  # no /proc here
    return found


def leftovers(engine: Engine, machine: Machine) -> list[Found]:
    """The containers whose jobmeter no longer lives. Of those made from elsewhere that cannot be told."""
    return [found for found in engine.labelled(RUN) if _is_left(found.labels, machine)]


class Survey(NamedTuple):
    """What is to be said of one engine."""

    engine: str
    says: str = ""
    why_not: str | None = None
    left: tuple[str, ...] = ()  # names of containers


def survey(machine: Machine) -> list[Survey]:
    """Look at Docker and Podman. A Podman that does not listen is not made to."""
    return [_look_at(name, machine) for name in ("docker", "podman")]


def _look_at(name: str, machine: Machine) -> Survey:
    if name == "podman" and podman_address() is None:
        if podman_address(may_start=True) is None:
            return Survey(name, why_not="not installed")
        return Survey(name, "installed; it is made to listen when it is needed")
    try:
        engine = open_engine(name)
    except LaunchError as reason:
        return Survey(name, why_not=str(reason))
    try:
        why = engine.why_no_parent()
        accounts = "a container's accounts are kept to the end" if why is None else f"{why}: figures may be at least"
        left = tuple(found.name for found in leftovers(engine, machine))
        return Survey(name, f"{engine.name} {engine.version} at {engine.address}, {accounts}", None, left)
    except LaunchError as reason:
        return Survey(name, why_not=str(reason))
    finally:
        engine.close()


class Cleaned(NamedTuple):
    """What was removed, and what could not be."""

    containers: list[str]
    groups: list[str]
    hindered: list[str]


def clean(machine: Machine) -> Cleaned:
    """Remove what killed runs left, with every engine that answers, and their cgroups."""
    done = Cleaned([], [], [])
    for name in ("docker", "podman"):
        try:
            engine = open_engine(name)
        except LaunchError:
            continue
        try:
            _clean_engine(engine, machine, done)
        finally:
            engine.close()
    done.groups.extend(sweep_parents(machine, patience=_PATIENCE))
    return done


def _clean_engine(engine: Engine, machine: Machine, done: Cleaned) -> None:
    for found in leftovers(engine, machine):
        try:
            engine.remove(found.id)
            done.containers.append(found.name)
        except LaunchError as error:
            done.hindered.append(f"{found.name}: {error}")


def _is_left(found: dict[str, str], machine: Machine) -> bool:
    if found.get(_HOST) != _host(machine):
        return False
    if found.get(_BOOT) != _boot(machine):
        return True
    try:
        stat = read_stat(machine, int(found.get(_PID, "")))
    except ValueError:
        return False
    except OSError:
        return True
    return stat.state in "ZX" or found.get(_START, str(stat.start)) != str(stat.start)


def _host(machine: Machine) -> str:
    """This machine, or the part of it whose processes can be seen from here."""
    try:
        return f"{os.uname().nodename} {os.readlink(f'{machine.proc}/self/ns/pid')}"
    except OSError:
        return os.uname().nodename


def _boot(machine: Machine) -> str:
    try:
        return read_text(f"{machine.proc}/sys/kernel/random/boot_id").strip()
    except OSError:
        return ""
