"""A job's group in the unified hierarchy (v2).

v2 keeps processes out of groups that hand controllers to children. So the job's
group is made below or beside the present one, wherever that rule and the file
permissions allow; a jobmeter alone in its group steps down to make room.
"""

from __future__ import annotations

import contextlib
import os

from jobmeter.errors import NoData
from jobmeter.kernel.cgroup import files
from jobmeter.kernel.cgroup.files import Directory
from jobmeter.kernel.cgroup.group import CHANGING, PREFIX, BlockIo, Cpu, Memory, make_held, remove_empty_groups_once
from jobmeter.kernel.machine import read_text, write_text

_CONTROLLERS = ("memory", "cpu", "pids", "io", "hugetlb")
_CPU_PERIOD_US = 100_000
_HOW = (
    "It needs root or a delegated group, for example: "
    "systemd-run --user --scope -p Delegate=yes jobmeter run -- COMMAND"
)


def create(own: str, name: str) -> GroupV2:
    """Make the job's group below `own`, the group of this process, or beside it."""
    parent = os.path.dirname(own)
    if own == _leaf(parent):
        group = _make_below(parent, own, name)  # for another job this process stepped down already
    else:
        group = _make_below(own, own, name)
        if group is None and _alone_in(own):
            group = _step_down(own, name)
        if group is None and _may_leave(own):
            group = _make_below(parent, own, name)
    if group is None:
        raise NoData(f"{own}: no group with a memory controller may be made here. {_HOW}")
    return group


def create_without_controllers(own: str, name: str) -> GroupV2:
    """Make a group below `own`, the group of this process, that separates its processes from others and no more.

    For a hierarchy whose controllers are in v1. NoData where that is not allowed.
    """
    with CHANGING:
        remove_empty_groups_once(own)
        group = _make(own, own, f"{PREFIX}{os.getpid()}-{name}")
    if group is None:
        raise NoData(f"{own}: no group may be made here. It needs root.")
    return group


def _make_below(parent: str, origin: str, name: str) -> GroupV2 | None:
    if not _hand_down(parent):
        return None
    remove_empty_groups_once(parent)
    return _make(parent, origin, name)


def _hand_down(parent: str) -> bool:
    """Enable the controllers for children of `parent`; False, and nothing changed, when memory is not available."""
    path = f"{parent}/cgroup.subtree_control"
    try:
        given = read_text(path).split()
        # Memory first: a group with processes refuses it but would take cpu and pids. Those would make
        # it the root of a threaded subtree, and no process could move to a group below it any more.
        if "memory" not in given:
            write_text(path, "+memory")
    except OSError:
        return False
    for controller in _CONTROLLERS:
        if controller not in given:
            with contextlib.suppress(OSError):
                write_text(path, f"+{controller}")
    return True


def _make(parent: str, origin: str, name: str) -> GroupV2 | None:
    path = f"{parent}/{name}"
    try:
        held = make_held(path)
    except OSError:
        return None
    if not _may_move(origin, path):
        os.close(held)
        os.rmdir(path)
        return None
    return GroupV2(path, origin, held)


def _may_move(origin: str, destination: str) -> bool:
    """Moving needs write permission on the nearest common ancestor's cgroup.procs."""
    common = os.path.commonpath((origin, destination))
    return os.access(f"{common}/cgroup.procs", os.W_OK) and os.access(f"{destination}/cgroup.procs", os.W_OK)


def _alone_in(own: str) -> bool:
    try:
        return files.read_pids(own) == [os.getpid()]
    except OSError:
        return False


def _may_leave(own: str) -> bool:
    """Whether a job may be beside `own`: not where `own` has limits, nor where another jobmeter measures it."""
    files = Directory(own)
    limits = [files.text(name) or "max" for name in ("memory.max", "memory.high", "cpu.max")]
    files.close()
    return all(limit.startswith("max") for limit in limits) and not os.path.basename(own).startswith(PREFIX)


def _leaf(parent: str) -> str:
    """Where this process goes when it steps down in `parent`."""
    return f"{parent}/{PREFIX}{os.getpid()}-meter"


def _step_down(own: str, name: str) -> GroupV2 | None:
    """Move this process into a leaf of `own`, so that `own` may have groups with controllers."""
    leaf = _leaf(own)
    try:
        os.mkdir(leaf)
    except OSError:
        return None
    try:
        files.move(os.getpid(), leaf)
    except OSError:
        os.rmdir(leaf)
        return None
    if _hand_down(own):
        group = _make(own, leaf, name)
        if group is not None:
            return group
    _step_up(leaf, own)
    return None


def _step_up(leaf: str, own: str) -> None:
    """Move this process back to `own`, unless it has another job there, which needs its controllers."""
    with contextlib.suppress(OSError):
        mine = f"{PREFIX}{os.getpid()}-"
        if [name for name in os.listdir(own) if name.startswith(mine)] != [os.path.basename(leaf)]:
            return
        for controller in read_text(f"{own}/cgroup.subtree_control").split():
            write_text(f"{own}/cgroup.subtree_control", f"-{controller}")
        files.dissolve(leaf, own)


def oom_kills(path: str) -> int | None:
    directory = Directory(path)
    table = directory.table("memory.events") or {}
    directory.close()
    return table.get("oom_kill")


class GroupV2:
    """See `cgroup.group.JobGroup`."""

    version = 2

    def __init__(self, path: str, origin: str, held: int | None = None) -> None:
        """`held` is a descriptor that shows that the group is in use (`make_held`)."""
        self.path = path
        self._held = held
        self._origin = origin
        self._files = Directory(path)

    def add(self, pid: int) -> None:
        files.move(pid, self.path)

    def processes(self) -> list[int]:
        return files.read_pids(self.path)

    def directories(self) -> dict[str, str]:
        return {"": self.path}

    def memory(self) -> Memory | None:
        current, stat = self._files.number("memory.current"), self._files.table("memory.stat")
        if current is None or stat is None:
            return None
        inactive = stat["inactive_file"]
        return Memory(
            current,
            stat["anon"],
            stat["active_file"] + inactive,
            inactive,
            self._files.number("memory.swap.current"),
            "hugetlb" in stat,
        )

    def memory_peak(self) -> int | None:
        return self._files.number("memory.peak")  # Linux 5.19

    def hugetlb(self) -> int | None:
        return self._files.sum_of_sizes("hugetlb.", ".current")

    def hugetlb_peak(self) -> int | None:
        return None  # v2 has none

    def cpu(self) -> Cpu | None:
        stat = self._files.table("cpu.stat")
        if stat is None:
            return None
        throttled = stat.get("throttled_usec")
        return Cpu(
            stat["usage_usec"] / 1e6,
            stat["user_usec"] / 1e6,
            stat["system_usec"] / 1e6,
            None if throttled is None else throttled / 1e6,
        )

    def cpu_nanoseconds(self) -> int | None:
        stat = self._files.table("cpu.stat")
        return None if stat is None else stat["usage_usec"] * 1000

    def io(self) -> BlockIo | None:
        content = self._files.text("io.stat")
        return None if content is None else BlockIo(*files.parse_io_stat(content))

    def pids_peak(self) -> int | None:
        return self._files.number("pids.peak")

    def oom_kills(self) -> int | None:
        return (self._files.table("memory.events") or {}).get("oom_kill")

    def pressure_seconds(self, resource: str) -> float | None:
        content = self._files.text(f"{resource}.pressure")
        return None if content is None else files.parse_pressure(content)

    def limit_memory(self, limit: int) -> None:
        write_text(f"{self.path}/memory.max", str(limit))
        with contextlib.suppress(OSError):  # only there with swap
            write_text(f"{self.path}/memory.swap.max", "0")
        with contextlib.suppress(OSError):  # Linux 4.19: one goes, all go
            write_text(f"{self.path}/memory.oom.group", "1")

    def limit_cpus(self, cpus: float) -> None:
        write_text(f"{self.path}/cpu.max", f"{round(cpus * _CPU_PERIOD_US)} {_CPU_PERIOD_US}")

    def missed(self) -> frozenset[str]:
        return frozenset()  # it is there until it is removed here

    def close(self) -> None:
        self._files.close()
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def remove(self) -> None:
        self.close()
        with CHANGING:
            with contextlib.suppress(OSError):
                files.dissolve(self.path, self._origin)
            parent = os.path.dirname(self.path)
            if self._origin == _leaf(parent):
                _step_up(self._origin, parent)
