"""The job's share of the CPU time of its machine, from the CPU times of both over the same period."""

from __future__ import annotations

from jobmeter.collectors.contract import Target
from jobmeter.collectors.proc_counters import Counters
from jobmeter.collectors.proc_escapes import Escapes
from jobmeter.kernel.hostfs import read_cpu_time
from jobmeter.kernel.tree import Process, Tree


class JobShare:
    """The job's share of the machine's busy CPU time, from one update to the next."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._tree: Tree | None = None
        if target.group is None:
            self._tree = Tree(target.machine, target.root, None if target.root_is_job else target.main)
            if target.root_is_job:
                self._tree.refresh()
            self._counters = Counters(target.machine, self._processes(self._tree), Escapes(target), with_io=False)
        self._last_used, self._last_busy = self._used(), read_cpu_time(target.machine).busy

    def update(self) -> tuple[float, float]:
        """The CPU seconds of the job since the last update, and their share of the machine's, 0 to 1."""
        used, busy = self._used(), read_cpu_time(self._target.machine).busy
        own, every = max(used - self._last_used, 0.0), busy - self._last_busy
        self._last_used, self._last_busy = used, busy
        if own <= 0:
            return 0.0, 0.0
        # The time of the machine is counted in ticks, and may lag behind that of the job by some ticks.
        return own, min(own / every, 1.0) if every > 0 else 1.0

    def _used(self) -> float:
        group = self._target.group
        if group is not None:
            return (group.cpu_nanoseconds() or 0) / 1e9
        assert self._tree is not None
        self._tree.refresh()
        self._counters.update(self._processes(self._tree))
        return self._counters.cpu_seconds

    def _processes(self, tree: Tree) -> list[Process]:
        """The root and all members: a root that is a shepherd has the CPU time of the processes that it waited for."""
        return [*([tree.root] if tree.root.present else []), *tree.members.values()]

    def close(self) -> None:
        if self._tree is not None:
            self._tree.close()
