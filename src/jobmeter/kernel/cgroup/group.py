"""A cgroup of the job's own: finding where one may be made, making, reading and removing it.

A process is always in some cgroup, and it is never the job's: the shell, the
terminal and jobmeter itself are in there too. Only a group made for the job counts.
"""

from __future__ import annotations

import fcntl
import functools
import os
import threading
import time

from jobmeter.errors import NoData
from jobmeter.kernel.hostfs import read_memory_hints
from jobmeter.kernel.machine import Machine, read_text
from jobmeter.kernel.procfs import read_cgroup
from jobmeter.light_typing import NamedTuple, Protocol

PREFIX = "jobmeter-"
"""The prefix of the names of groups that jobmeter makes."""

_ATTEMPTS = 10

CHANGING = threading.Lock()
"""Held while a group is made or removed: that can move this process to another group."""


class Memory(NamedTuple):
    """Bytes; kernel memory is part of `current`."""

    current: int
    anon: int
    file: int  # page cache that could be dropped; shared memory is not
    inactive_file: int
    swap: int | None
    with_hugetlb: bool = False  # mount option memory_hugetlb_accounting, Linux 6.7


class Cpu(NamedTuple):
    """Seconds."""

    total: float
    user: float
    system: float
    throttled: float | None


class BlockIo(NamedTuple):
    """Bytes at the block devices, as far as the kernel attributes them."""

    read: int
    written: int


class Group(Protocol):
    """The accounts of a cgroup that holds one job and nothing else. Readings are None where there is no such file."""

    version: int
    path: str

    def processes(self) -> list[int]: ...
    def directories(self) -> dict[str, str]:
        """Where a process of the job must be listed, by controller; `""` is the unified hierarchy."""

    def memory(self) -> Memory | None: ...
    def memory_peak(self) -> int | None: ...
    def hugetlb(self) -> int | None: ...
    def hugetlb_peak(self) -> int | None: ...
    def cpu(self) -> Cpu | None: ...
    def cpu_nanoseconds(self) -> int | None: ...
    def io(self) -> BlockIo | None: ...
    def pids_peak(self) -> int | None: ...
    def oom_kills(self) -> int | None: ...
    def pressure_seconds(self, resource: str) -> float | None: ...
    def missed(self) -> frozenset[str]:
        """Accounts that may have grown after they were last read.

        Of `cpu`, `throttled`, `oom_kills`, `memory_peak` and `pids_peak`.
        """

    def close(self) -> None:
        """Close its files; the group stays."""


class JobGroup(Group, Protocol):
    """A cgroup that jobmeter made for a job: it can also be filled, limited and removed."""

    def add(self, pid: int) -> None: ...
    def limit_memory(self, limit: int) -> None: ...
    def limit_cpus(self, cpus: float) -> None: ...
    def remove(self) -> None:
        """Remove it; processes still in it go back to where the job came from."""


class CgroupMount(NamedTuple):
    version: int
    controllers: frozenset[str]
    root: str  # the part of the hierarchy that is mounted
    path: str


def parse_mountinfo(content: str) -> list[CgroupMount]:
    mounts = []
    # A mount point may hold what splitlines() takes for a line's end.
    for line in content.rstrip("\n").split("\n") if content else []:
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(" "), after.split(" ", 2)
        if kind == "cgroup2":
            mounts.append(CgroupMount(2, frozenset(), fields[3], fields[4]))
        elif kind == "cgroup":
            mounts.append(CgroupMount(1, frozenset(options.split(",")), fields[3], fields[4]))
    return mounts


@functools.cache
def find_mounts(machine: Machine) -> list[CgroupMount]:
    """The hierarchies of cgroups, as they were mounted at the first call."""
    mounts = parse_mountinfo(read_text(f"{machine.proc}/self/mountinfo"))
    if machine.sys != "/sys":
        mounts = [mount._replace(path=mount.path.replace("/sys", machine.sys, 1)) for mount in mounts]
    return mounts


def own_directory(mount: CgroupMount, path: str) -> str | None:
    """The directory of cgroup `path`, or None when it lies outside what is mounted here."""
    if mount.root != "/":
        if path != mount.root and not path.startswith(mount.root + "/"):
            return None
        path = path[len(mount.root) :]
    if "/.." in path:
        return None
    return os.path.normpath(f"{mount.path}/{path.lstrip('/')}")


def own_directories(machine: Machine) -> tuple[dict[str, str], str | None]:
    """This process's cgroups: controller → directory for v1, and the directory of v2."""
    try:
        mounts, paths = find_mounts(machine), read_cgroup(machine, "self")
    except OSError as error:
        raise NoData(f"no cgroups here: {error.filename}: {error.strerror}") from None
    v1: dict[str, str] = {}
    v2 = None
    for mount in mounts:
        if mount.version == 2:
            v2 = own_directory(mount, paths.get("", "/")) or v2
            continue
        for controller in mount.controllers & paths.keys():
            directory = own_directory(mount, paths[controller])
            if directory is not None:
                v1[controller] = directory
    return v1, v2


def create_group(machine: Machine, name: str) -> JobGroup:
    """Make a group for the job `name`; NoData, with what it would need, where that is not allowed."""
    full_name = f"{PREFIX}{os.getpid()}-{name}"
    with CHANGING:
        by_controller, unified = own_directories(machine)
        if "memory" in by_controller or "cpuacct" in by_controller:
            if "hugetlb" in by_controller and not read_memory_hints(machine).hugetlb_pool:
                del by_controller["hugetlb"]  # one more group slows each run, and there is nothing to count
            from jobmeter.kernel.cgroup import v1

            return v1.create(by_controller, full_name)
        if unified is not None:
            from jobmeter.kernel.cgroup import v2

            return v2.create(unified, full_name)
    raise NoData("no cgroup hierarchy is mounted here")


@functools.cache
def remove_empty_groups_once(parent: str) -> None:
    """`remove_empty_groups`, the first time that this process makes a group below `parent`."""
    remove_empty_groups(parent)


def remove_empty_groups(parent: str) -> None:
    """Remove groups left below `parent` by a jobmeter that was killed, once their jobs are over."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        if not name.startswith(PREFIX) or (claimed := _claim(f"{parent}/{name}")) is None:
            continue
        try:
            os.rmdir(f"{parent}/{name}")
        except OSError:
            continue  # its job still runs
        finally:
            os.close(claimed)


def make_held(path: str) -> int:
    """Make a group, and hold it until the returned descriptor is closed; OSError where that is not allowed.

    A lock shows that its jobmeter lives. The pid in the name does not: it may be of another pid namespace.
    """
    for _ in range(_ATTEMPTS):
        os.makedirs(path, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # another jobmeter took it for one that was left, before it was held
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.path.exists(path):
                return descriptor
        except OSError:
            time.sleep(0.001)  # another jobmeter checks it just now
        os.close(descriptor)
    os.makedirs(path, exist_ok=True)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def is_held(path: str) -> bool:
    """Whether the jobmeter that made this group lives."""
    claimed = _claim(path)
    if claimed is not None:
        os.close(claimed)
    return claimed is None and os.path.exists(path)


def _claim(path: str) -> int | None:
    """A descriptor until whose end no other can hold the group; None while its jobmeter lives."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def enclosing_cpu_account(machine: Machine) -> dict[str, str]:
    """Where the kernel counts the CPU time of the cgroup that surrounds this process, as `Group.directories`.

    Empty where it does not, or not exactly: the root of v2 counts by ticks, and misses what runs between two of them.
    """
    try:
        v1, v2 = own_directories(machine)
    except NoData:
        return {}
    if "cpuacct" in v1:
        return {"cpuacct": v1["cpuacct"]}
    if v2 is not None and os.path.exists(f"{v2}/cgroup.events"):  # which the root does not have
        return {"": v2}
    return {}


def read_cpu_account(account: dict[str, str]) -> int:
    """Nanoseconds of CPU time used in the group of `enclosing_cpu_account`, and in those below it."""
    from jobmeter.kernel.cgroup.files import parse_table

    for controller, path in account.items():
        if controller == "cpuacct":
            return int(read_text(f"{path}/cpuacct.usage"))
        return parse_table(read_text(f"{path}/cpu.stat"))["usage_usec"] * 1000
    raise NoData("no cgroup around this process counts CPU time")


def enclosing_oom_kills(machine: Machine) -> int | None:
    """The number of OOM kills in the cgroup that surrounds this process."""
    try:
        by_controller, unified = own_directories(machine)
        if "memory" in by_controller:
            from jobmeter.kernel.cgroup import v1

            return v1.oom_kills(by_controller["memory"])
        if unified is not None and os.path.exists(f"{unified}/memory.events"):
            from jobmeter.kernel.cgroup import v2

            return v2.oom_kills(unified)
        for line in read_text(f"{machine.proc}/vmstat").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except (NoData, OSError):
        pass
    return None
