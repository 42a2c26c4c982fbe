"""A job's group in the unified hierarchy (v2).

In v2, a group that enables controllers for its children may not have processes itself. So the job's
group is made below the group of this process or next to it, as that rule and the file permissions
allow. A jobmeter that is alone in its group first moves itself to a new child group ("steps down").
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
    """Make the job's group below `own`, the group of this process, or next to it. Raises NoData if not allowed."""
    parent = os.path.dirname(own)
    if own == _leaf(parent):
        group = _make_below(parent, own, name)  # this process already stepped down, for another job
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
    """Make a group below `own`, the group of this process, that only separates its processes from others.

    For a hierarchy whose controllers are in v1. Raises NoData if that is not allowed.
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
    """Enable the controllers for children of `parent`; False, with nothing changed, if memory is not available."""
    path = f"{parent}/cgroup.subtree_control"
    try:
        given = read_text(path).split()
        # Memory first: a group with processes refuses it, but would accept cpu and pids. Those would make the
        # group the root of a threaded subtree, and processes could not be moved to groups below it.
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
    """Whether this user may write cgroup.procs of `destination` and of the nearest common ancestor, as a move needs."""
    common = os.path.commonpath((origin, destination))
    return os.access(f"{common}/cgroup.procs", os.W_OK) and os.access(f"{destination}/cgroup.procs", os.W_OK)


def _alone_in(own: str) -> bool:
    try:
        return files.read_pids(own) == [os.getpid()]
    except OSError:
        return False


def _may_leave(own: str) -> bool:
    """Whether a job may be next to `own`: not if `own` has limits, nor if another jobmeter measures it."""
    files = Directory(own)
    limits = [files.text(name) or "max" for name in ("memory.max", "memory.high", "cpu.max")]
    files.close()
    return all(limit.startswith("max") for limit in limits) and not os.path.basename(own).startswith(PREFIX)


def _leaf(parent: str) -> str:
    """The child group that this process moves to when it steps down from `parent`."""
    return f"{parent}/{PREFIX}{os.getpid()}-meter"


def _step_down(own: str, name: str) -> GroupV2 | None:
    """Move this process to a leaf below `own`, so that `own` may enable controllers, and make the job's group."""
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
    """Move this process back to `own`, unless another of its jobs has a group there and needs the controllers."""
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
        """`held` is the descriptor that locks the group: it shows that it is in use (`make_held`)."""
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
        return None  # v2 has no such file

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
        with contextlib.suppress(OSError):  # the file exists only with swap
            write_text(f"{self.path}/memory.swap.max", "0")
        with contextlib.suppress(OSError):  # Linux 4.19: an OOM kill ends the whole group
            write_text(f"{self.path}/memory.oom.group", "1")

    def limit_cpus(self, cpus: float) -> None:
        write_text(f"{self.path}/cpu.max", f"{round(cpus * _CPU_PERIOD_US)} {_CPU_PERIOD_US}")

    def missed(self) -> frozenset[str]:
        return frozenset()  # the group exists until `remove`

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
