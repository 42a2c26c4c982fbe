"""The cgroup accounts of one container, combined from several groups that each count a part."""

from __future__ import annotations

from jobmeter.kernel.cgroup.group import BlockIo, Cpu, Group, Memory

_NOTHING = Cpu(0.0, 0.0, 0.0, 0.0)


class ContainerGroup:
    """A `cgroup.group.Group` that can be read to the end, though the container's own group is removed when it ends.

    `whole` is the group that was made for this run as the parent of the container's, or None. `own` is the group that
    the container runtime made: only it counts throttling and, in v1, OOM kills, so its last values are remembered.
    `aside` is a group below `whole` that holds helper processes of the container runtime (Podman's conmon):
    their usage is subtracted.
    """

    def __init__(
        self, whole: Group | None, own: Group | None, aside: Group | None = None, *, from_now: bool = False
    ) -> None:
        """With `from_now`, counters start at their present values, because the container already runs."""
        present = whole or own
        assert present is not None
        self.version = present.version
        self.path = present.path
        self._whole = whole
        self._own = own
        self._aside = aside
        self._last_cpu: Cpu | None = None
        self._last_io: BlockIo | None = None
        self._last_peak: int | None = None
        self._last_pids: int | None = None
        self._last_kills: int | None = None
        self._read_at_end = False
        self._cpu_before, self._io_before, self._kills_before = _NOTHING, BlockIo(0, 0), 0
        if from_now:
            self._read_own_group()
            self._cpu_before = self._last_cpu or _NOTHING
            self._io_before = self._last_io or BlockIo(0, 0)
            self._kills_before = self._last_kills or 0

    def read_last(self) -> None:
        """Read the container's own group for the last time: its processes have ended, and it will be removed."""
        self._read_at_end = self._read_own_group() or self._read_at_end

    def missed(self) -> frozenset[str]:
        """Accounts that may be incomplete: none after a successful `read_last`, else those no group above counts."""
        if self._read_at_end:
            return frozenset()
        if self._whole is None:
            return frozenset({"cpu", "throttled", "oom_kills", "memory_peak", "pids_peak"})
        peaks = {"memory_peak", "pids_peak"} if self._aside is not None else set()
        return frozenset({"throttled", "oom_kills", *peaks})

    def _read_own_group(self) -> bool:
        """Remember the values of the container's own group; False if there is none, or it was removed."""
        if self._own is None or (cpu := self._own.cpu()) is None:
            return False
        self._last_cpu = cpu
        self._last_io = self._own.io() or self._last_io
        self._last_peak = _larger(self._last_peak, self._own.memory_peak())
        self._last_pids = _larger(self._last_pids, self._own.pids_peak())
        self._last_kills = _larger(self._last_kills, self._own.oom_kills())
        return True

    def cpu(self) -> Cpu | None:
        cpu = self._cpu_so_far()
        if cpu is None:
            return None
        own, before = self._last_cpu, self._cpu_before
        throttled = None if own is None or own.throttled is None else own.throttled - (before.throttled or 0.0)
        return Cpu(
            max(cpu.total - before.total, 0.0),
            max(cpu.user - before.user, 0.0),
            max(cpu.system - before.system, 0.0),
            throttled,
        )

    def _cpu_so_far(self) -> Cpu | None:
        """CPU time without that of helpers, also from before the measurement; throttling is not part of it."""
        self._read_own_group()
        if self._whole is None or (whole := self._whole.cpu()) is None:
            return self._last_cpu
        helpers = (self._aside.cpu() if self._aside else None) or _NOTHING
        return Cpu(whole.total - helpers.total, whole.user - helpers.user, whole.system - helpers.system, None)

    def cpu_nanoseconds(self) -> int | None:
        # This is read often: only its own group, as long as that exists.
        present = self._own.cpu_nanoseconds() if self._own else None
        if present is None and (cpu := self._cpu_so_far()) is not None:
            present = round(cpu.total * 1e9)
        return present

    def memory(self) -> Memory | None:
        memory = self._whole.memory() if self._is_alone() and self._whole else None
        if memory is None and self._own is not None:
            memory = self._own.memory()
        return memory

    def memory_peak(self) -> int | None:
        self._read_own_group()
        whole = self._whole.memory_peak() if self._whole else None
        if whole is None or (self._read_at_end and self._last_peak is not None):
            return self._last_peak
        if self._is_alone():
            return whole
        # At the moment of this peak, the helpers held at most their own peak.
        helpers = (self._aside.memory_peak() if self._aside else None) or 0
        return max(whole - helpers, self._last_peak or 0)

    def pids_peak(self) -> int | None:
        self._read_own_group()
        whole = self._whole.pids_peak() if self._is_alone() and self._whole else None
        return self._last_pids if self._read_at_end or whole is None else whole

    def io(self) -> BlockIo | None:
        self._read_own_group()
        io = self._last_io
        if self._whole is not None and (whole := self._whole.io()) is not None:
            helpers = (self._aside.io() if self._aside else None) or BlockIo(0, 0)
            io = BlockIo(whole.read - helpers.read, whole.written - helpers.written)
        if io is None:
            return None
        before = self._io_before
        return BlockIo(max(io.read - before.read, 0), max(io.written - before.written, 0))

    def oom_kills(self) -> int | None:
        self._read_own_group()
        # v1 counts a kill only in the group of the killed process, v2 also in all groups above it.
        kills = _larger(self._last_kills, self._whole.oom_kills() if self._whole else None)
        return None if kills is None else max(kills - self._kills_before, 0)

    def pressure_seconds(self, resource: str) -> float | None:
        present = self._own or self._whole
        return present.pressure_seconds(resource) if present else None

    def _is_alone(self) -> bool:
        """Whether the group above the container's never held anything else."""
        return self._whole is not None and self._aside is None

    def processes(self) -> list[int]:
        """The container's processes; none when its group was removed."""
        try:
            return self._own.processes() if self._own else []
        except OSError:
            return []

    def directories(self) -> dict[str, str]:
        return {}  # nothing to check: the container runtime places the processes, and may make more groups

    def hugetlb(self) -> int | None:
        return self._own.hugetlb() if self._own else None

    def hugetlb_peak(self) -> int | None:
        return None  # lost when the container's own group is removed

    def close(self) -> None:
        for group in (self._whole, self._own, self._aside):
            if group is not None:
                group.close()


def _larger(a: int | None, b: int | None) -> int | None:
    numbers = [number for number in (a, b) if number is not None]
    return max(numbers) if numbers else None
