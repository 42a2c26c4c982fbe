"""The cgroup of a job: finding where one may be made, making, reading and removing it.

Every process is in some cgroup from the start, but never in one of the job alone: the shell, the
terminal and jobmeter itself are in it too. Only a group made for the job counts the job and nothing else.
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
from jobmeter.kernel.mountinfo import parse_mounts
from jobmeter.kernel.procfs import read_cgroup
from jobmeter.light_typing import NamedTuple, Protocol

PREFIX = "jobmeter-"
"""The prefix of the names of groups that jobmeter makes."""

_ATTEMPTS = 10

CHANGING = threading.Lock()
"""Held while a group is made or removed, because either can move this process to another group."""


class Memory(NamedTuple):
    """Bytes; kernel memory is part of `current`."""

    current: int
    anon: int
    file: int  # page cache that the kernel can drop; shared memory is not part of it
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
    """The accounts of a cgroup that holds one job and nothing else. A reading is None if the kernel lacks the file."""

    version: int
    path: str

    def processes(self) -> list[int]: ...
    def directories(self) -> dict[str, str]:
        """Controller → directory of the group that the processes must be in; `""` is the unified hierarchy."""

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
        """The names of accounts that may have grown after they were last read.

        A subset of `cpu`, `throttled`, `oom_kills`, `memory_peak` and `pids_peak`.
        """

    def close(self) -> None:
        """Close its files; the group stays."""


class JobGroup(Group, Protocol):
    """A cgroup that jobmeter made for a job: processes can be added, limits set, and it can be removed."""

    def add(self, pid: int) -> None: ...
    def limit_memory(self, limit: int) -> None: ...
    def limit_cpus(self, cpus: float) -> None: ...
    def remove(self) -> None:
        """Remove the group; processes still in it are moved back to the group that the job was started in."""


class CgroupMount(NamedTuple):
    version: int
    controllers: frozenset[str]
    root: str  # the directory of the hierarchy that is mounted
    path: str


def parse_mountinfo(content: str) -> list[CgroupMount]:
    return [
        CgroupMount(2, frozenset(), mount.root, mount.path)
        if mount.kind == "cgroup2"
        else CgroupMount(1, frozenset(mount.options.split(",")), mount.root, mount.path)
        for mount in parse_mounts(content, "cgroup", "cgroup2")
    ]


@functools.cache
def find_mounts(machine: Machine) -> list[CgroupMount]:
    """The mounted cgroup hierarchies, as of the first call."""
    mounts = parse_mountinfo(read_text(f"{machine.proc}/self/mountinfo"))
    if machine.sys != "/sys":
        mounts = [mount._replace(path=mount.path.replace("/sys", machine.sys, 1)) for mount in mounts]
    return mounts


def own_directory(mount: CgroupMount, path: str) -> str | None:
    """The directory of cgroup `path`, or None if it lies outside of what is mounted here."""
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
    """Make a group for the job `name`. Raises NoData, with what would be needed, if that is not allowed."""
    full_name = f"{PREFIX}{os.getpid()}-{name}"
    with CHANGING:
        by_controller, unified = own_directories(machine)
        if "memory" in by_controller or "cpuacct" in by_controller:
            if "hugetlb" in by_controller and not read_memory_hints(machine).hugetlb_pool:
                del by_controller["hugetlb"]  # each further group slows the run down, and there is nothing to count
            from jobmeter.kernel.cgroup import v1

            return v1.create(by_controller, full_name)
        if unified is not None:
            from jobmeter.kernel.cgroup import v2

            return v2.create(unified, full_name)
    raise NoData("no cgroup hierarchy is mounted here")


@functools.cache
def remove_empty_groups_once(parent: str) -> None:
    """Call `remove_empty_groups`, only the first time that this process makes a group below `parent`."""
    remove_empty_groups(parent)


def remove_empty_groups(parent: str) -> None:
    """Remove the groups that a killed jobmeter left below `parent`, if their jobs have ended."""
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
    """Make a group, and lock it until the returned descriptor is closed. Raises OSError if that is not allowed.

    The lock shows that the jobmeter that made the group is alive. The pid in its name does not show that: it may be of
    another pid namespace.
    """
    for _ in range(_ATTEMPTS):
        os.makedirs(path, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # another jobmeter removed it as left behind, before it was locked
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.path.exists(path):
                return descriptor
        except OSError:
            time.sleep(0.001)  # another jobmeter is just checking it
        os.close(descriptor)
    os.makedirs(path, exist_ok=True)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def is_held(path: str) -> bool:
    """Whether the jobmeter that made this group is alive."""
    claimed = _claim(path)
    if claimed is not None:
        os.close(claimed)
    return claimed is None and os.path.exists(path)


def _claim(path: str) -> int | None:
    """Lock the group for this process alone, until the returned descriptor is closed; None if its jobmeter is alive."""
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
    """Where the kernel counts the CPU time of this process's cgroup, in the form of `Group.directories`.

    Empty if there is none, or it is not exact: the root of v2 counts by ticks, and misses what runs between two ticks.
    """
    try:
        v1, v2 = own_directories(machine)
    except NoData:
        return {}
    if "cpuacct" in v1:
        return {"cpuacct": v1["cpuacct"]}
    if v2 is not None and os.path.exists(f"{v2}/cgroup.events"):  # the root has no such file
        return {"": v2}
    return {}


def read_cpu_account(account: dict[str, str]) -> int:
    """Nanoseconds of CPU time used in the group of `enclosing_cpu_account`, and in the groups below it."""
    from jobmeter.kernel.cgroup.files import parse_table

    for controller, path in account.items():
        if controller == "cpuacct":
            return int(read_text(f"{path}/cpuacct.usage"))
        return parse_table(read_text(f"{path}/cpu.stat"))["usage_usec"] * 1000
    raise NoData("no cgroup around this process counts CPU time")


def enclosing_oom_kills(machine: Machine) -> int | None:
    """The number of OOM kills in the cgroup of this process, else on the whole machine; None if neither is known."""
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
