"""A job's group in the v1 hierarchies, one directory per controller."""

from __future__ import annotations

import contextlib
import os

from jobmeter.errors import NoData
from jobmeter.kernel.cgroup import files
from jobmeter.kernel.cgroup.files import Directory
from jobmeter.kernel.cgroup.group import BlockIo, Cpu, Memory, make_held, remove_empty_groups_once
from jobmeter.kernel.machine import TICKS_PER_SECOND, write_text

_CONTROLLERS = ("memory", "cpuacct", "cpu", "pids", "blkio", "hugetlb")
_COUNTING = ("memory", "cpuacct")
"""The controllers that exact figures are read from."""
_CPU_PERIOD_US = 100_000


def create(own: dict[str, str], name: str) -> GroupV1:
    """Make the group below that of this process, in every hierarchy that allows it.

    Raises NoData if neither the hierarchy of memory nor that of cpuacct does.
    """
    parents, held, refused = {}, {}, None
    for controller in _CONTROLLERS:
        if controller not in own:
            continue
        remove_empty_groups_once(own[controller])
        try:
            # cpu and cpuacct are often mounted together, and then are one directory.
            if own[controller] not in held:
                held[own[controller]] = make_held(f"{own[controller]}/{name}")
            parents[controller] = own[controller]
        except OSError as error:
            refused = error
    if "memory" not in parents and "cpuacct" not in parents:
        assert refused is not None
        for parent, descriptor in held.items():
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.rmdir(f"{parent}/{name}")
        raise NoData(
            f"{os.path.dirname(refused.filename)}: {refused.strerror}. "
            "It needs root, or that directory (memory, cpuacct, pids) given to this user with chown."
        )
    return GroupV1(parents, name, tuple(held.values()))


def oom_kills(path: str) -> int | None:
    directory = Directory(path)
    table = directory.table("memory.oom_control") or {}
    directory.close()
    return table.get("oom_kill")


class GroupV1:
    """See `cgroup.group.JobGroup`."""

    version = 1

    def __init__(self, parents: dict[str, str], name: str, held: tuple[int, ...] = ()) -> None:
        """`held` are the descriptors that lock the group: they show that it is in use (`make_held`)."""
        self._parents = parents
        self._held = held
        self._name = name
        self._directories = {c: Directory(f"{parent}/{name}") for c, parent in parents.items()}
        self.path = next(iter(self._directories.values())).path

    def _directory(self, controller: str) -> Directory | None:
        return self._directories.get(controller)

    def add(self, pid: int) -> None:
        for directory in self._directories.values():
            files.move(pid, directory.path)

    def processes(self) -> list[int]:
        return files.read_pids(self.path)

    def directories(self) -> dict[str, str]:
        return {name: directory.path for name, directory in self._directories.items() if name in _COUNTING}

    def memory(self) -> Memory | None:
        directory = self._directory("memory")
        if directory is None:
            return None
        current, stat = directory.number("memory.usage_in_bytes"), directory.table("memory.stat")
        if current is None or stat is None:
            return None
        inactive = stat["total_inactive_file"]
        return Memory(
            current,
            stat["total_rss"],
            stat["total_active_file"] + inactive,
            inactive,
            stat.get("total_swap"),
        )

    def memory_peak(self) -> int | None:
        directory = self._directory("memory")
        return directory.number("memory.max_usage_in_bytes") if directory else None

    def hugetlb(self) -> int | None:
        directory = self._directory("hugetlb")
        return directory.sum_of_sizes("hugetlb.", ".usage_in_bytes") if directory else None

    def hugetlb_peak(self) -> int | None:
        """The sum of the peaks of all page sizes: with several sizes, an upper bound."""
        directory = self._directory("hugetlb")
        return directory.sum_of_sizes("hugetlb.", ".max_usage_in_bytes") if directory else None

    def cpu(self) -> Cpu | None:
        directory = self._directory("cpuacct")
        if directory is None:
            return None
        total, stat = directory.number("cpuacct.usage"), directory.table("cpuacct.stat")
        if total is None or stat is None:
            return None
        cpu = self._directory("cpu")
        throttled = (cpu.table("cpu.stat") or {}).get("throttled_time") if cpu else None
        return Cpu(
            total / 1e9,
            stat["user"] / TICKS_PER_SECOND,
            stat["system"] / TICKS_PER_SECOND,
            None if throttled is None else throttled / 1e9,
        )

    def cpu_nanoseconds(self) -> int | None:
        directory = self._directory("cpuacct")
        return directory.number("cpuacct.usage") if directory else None

    def io(self) -> BlockIo | None:
        directory = self._directory("blkio")
        content = directory.text("blkio.throttle.io_service_bytes_recursive") if directory else None
        return None if content is None else BlockIo(*files.parse_blkio(content))

    def pids_peak(self) -> int | None:
        directory = self._directory("pids")
        return directory.number("pids.peak") if directory else None

    def oom_kills(self) -> int | None:
        directory = self._directory("memory")
        return (directory.table("memory.oom_control") or {}).get("oom_kill") if directory else None

    def pressure_seconds(self, resource: str) -> float | None:
        return None  # v1 has no pressure files

    def limit_memory(self, limit: int) -> None:
        directory = self._directory("memory")
        if directory is None:
            raise NoData("no memory controller for this job")
        write_text(f"{directory.path}/memory.limit_in_bytes", str(limit))
        with contextlib.suppress(OSError):  # the file exists only with swap accounting
            write_text(f"{directory.path}/memory.memsw.limit_in_bytes", str(limit))

    def limit_cpus(self, cpus: float) -> None:
        directory = self._directory("cpu")
        if directory is None:
            raise NoData("no cpu controller for this job")
        write_text(f"{directory.path}/cpu.cfs_period_us", str(_CPU_PERIOD_US))
        write_text(f"{directory.path}/cpu.cfs_quota_us", str(round(cpus * _CPU_PERIOD_US)))

    def missed(self) -> frozenset[str]:
        return frozenset()  # the group exists until `remove`

    def close(self) -> None:
        for directory in self._directories.values():
            directory.close()
        self._release()

    def _release(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)
        self._held = ()

    def remove(self) -> None:
        for controller, directory in self._directories.items():
            directory.close()
            with contextlib.suppress(OSError):
                files.dissolve(directory.path, self._parents[controller])
        self._release()
