"""A cgroup made as the parent of the one that a container runtime makes: its accounts outlive the container.

A container runtime accepts one path for all hierarchies of cgroup v1, relative to their roots, and makes
directories in every hierarchy. So the group is made at the roots, where container runtimes have their groups, and
not below the group of this process, which may be a different one in each hierarchy.
"""

from __future__ import annotations

import os
import time

from jobmeter.errors import NoData
from jobmeter.kernel.cgroup import files, v1, v2
from jobmeter.kernel.cgroup.group import PREFIX, CgroupMount, Group, find_mounts, is_held, make_held, own_directory
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import read_cgroup

_ACCOUNTS = ("memory", "cpuacct", "cpu", "pids", "blkio")
_PATIENCE = 1.0
"""Seconds to wait for the helpers of a container runtime to leave the group of a container that has ended."""


class ParentGroup:
    """`path` is passed to the container runtime; `group` reads the accounts of everything that ever ran below it."""

    def __init__(self, path: str, group: Group, roots: dict[str, str], everywhere: list[str]) -> None:
        self.path = path
        self.group = group
        self._roots = roots  # controller → directory of the group in that hierarchy of v1
        self._everywhere = everywhere

    def below(self, name: str) -> Group:
        """The group `name` that a container runtime made, or will make, below this one."""
        if self.group.version == 1:
            return v1.GroupV1(self._roots, name)
        return v2.GroupV2(f"{self.group.path}/{name}", self.group.path)

    def remove(self) -> bool:
        """Remove the group from every hierarchy, with all groups below it; False if something still runs there."""
        deadline = time.monotonic() + _PATIENCE
        while not _remove_trees(self._everywhere):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


def create_parent(machine: Machine, name: str) -> ParentGroup:
    """Make the group for the containers of run `name`. Raises NoData, with what would be needed, if not allowed."""
    full_name = f"{PREFIX}{os.getpid()}-{name}"
    mounts = _mounts(machine)
    remove_empty_parents(machine)
    everywhere = [f"{mount.path}/{full_name}" for mount in mounts]
    tops = {controller: mount.path for mount in mounts for controller in mount.controllers if mount.version == 1}
    if "memory" in tops or "cpuacct" in tops:
        roots = {c: f"{tops[c]}/{full_name}" for c in _ACCOUNTS if c in tops}
        held = _make_v1(roots, everywhere)
        group: Group = v1.GroupV1({c: tops[c] for c in roots}, full_name, held)
        return ParentGroup(f"/{full_name}", group, roots, everywhere)
    unified = [mount.path for mount in mounts if mount.version == 2]
    if not unified:
        raise NoData("the root of no cgroup hierarchy is visible here")
    return ParentGroup(f"/{full_name}", v2.create(unified[0], full_name), {}, everywhere)


def _make_v1(directories: dict[str, str], everywhere: list[str]) -> tuple[int, ...]:
    """Make the directories; return the descriptors that lock them. Raises NoData if that is not allowed."""
    held: list[int] = []
    try:
        # cpu and cpuacct are often mounted together, and then are one directory.
        for directory in sorted(set(directories.values())):
            held.append(make_held(directory))
    except OSError as error:
        for descriptor in held:
            os.close(descriptor)
        _remove_trees(everywhere)
        raise NoData(
            f"{os.path.dirname(error.filename)}: {error.strerror}. Only root may make a cgroup for containers."
        ) from None
    return tuple(held)


def remove_empty_parents(machine: Machine, *, patience: float = 0.0) -> list[str]:
    """Remove the groups that a killed jobmeter left for its containers, if nothing runs there; return their names.

    `patience`: the seconds to wait for the helpers of a container runtime to leave the groups.
    """
    removed: set[str] = set()
    deadline = time.monotonic() + patience
    while left := _left_at([mount.path for mount in _mounts(machine)]):
        removed.update(os.path.basename(path) for path in left if _remove_tree(path))
        if time.monotonic() >= deadline:
            break
        time.sleep(0.05)
    return sorted(removed)


def _left_at(tops: list[str]) -> list[str]:
    """The groups in `tops` whose jobmeter has ended. A jobmeter locks its group in some hierarchies, not in all."""
    paths = [f"{top}/{name}" for top in tops for name in _names_in(top)]
    held = {os.path.basename(path) for path in paths if is_held(path)}
    return [path for path in paths if os.path.basename(path) not in held]


def _names_in(top: str) -> list[str]:
    try:
        return [name for name in os.listdir(top) if name.startswith(PREFIX)]
    except OSError:
        return []


def group_of(machine: Machine, pid: int, container: str) -> Group:
    """The group that a container runtime made for the container with this id, in which `pid` runs.

    Raises NoData if the process is in a group that others share: rootless containers have no group of their own.
    """
    try:
        paths = read_cgroup(machine, pid)
    except OSError as error:
        raise NoData(f"process {pid} cannot be read: {error.strerror}") from None
    by_controller: dict[str, str] = {}
    unified = None
    for mount in find_mounts(machine) if machine.has_proc() else []:
        for controller in mount.controllers & paths.keys() if mount.version == 1 else {""} & paths.keys():
            directory = own_directory(mount, _up_to(paths[controller], container))
            if directory is None or container not in directory or not os.path.isdir(directory):
                continue
            if mount.version == 2:
                unified = directory
            elif controller in _ACCOUNTS:
                by_controller[controller] = directory
    if "memory" in by_controller or "cpuacct" in by_controller:
        name = os.path.basename(next(iter(by_controller.values())))
        return v1.GroupV1({c: os.path.dirname(path) for c, path in by_controller.items()}, name)
    if unified is not None and os.path.exists(f"{unified}/memory.current"):
        return v2.GroupV2(unified, os.path.dirname(unified))
    raise NoData("the container has no cgroup of its own that can be read here")


def _up_to(path: str, container: str) -> str:
    """`path` up to the part that names the container: some runtimes make another group below it."""
    before, name, after = path.partition(container)
    return before + name + after.partition("/")[0]


def _mounts(machine: Machine) -> list[CgroupMount]:
    """The hierarchies whose root is visible."""
    try:
        return [mount for mount in find_mounts(machine) if mount.root == "/"]
    except OSError as error:
        raise NoData(f"no cgroups here: {error.filename}: {error.strerror}") from None


def _remove_trees(directories: list[str]) -> bool:
    return sum(map(_remove_tree, directories)) == len(directories)


def _remove_tree(path: str) -> bool:
    try:
        directories = [directory for directory, _, _ in os.walk(path, topdown=False)]
        if any(map(files.read_pids, directories)):
            return False
        for directory in directories:
            os.rmdir(directory)
    except OSError:
        return not os.path.exists(path)  # something still runs there, or another jobmeter removed it first
    return True
