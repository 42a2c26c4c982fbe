"""Memory of a job that no resident size counts, searched for only if the machine has such memory.

Reading /proc/meminfo costs 5 µs, `status` 25 µs per process, and the open files of a
process some 3 µs each. A job's cgroup is charged for shared memory and page tables, but
not for huge pages and swap.
"""

from __future__ import annotations

import os
import time

from jobmeter.collectors.allowance import Allowance
from jobmeter.collectors.proc_memory import Statuses
from jobmeter.kernel import procfs
from jobmeter.kernel.cgroup.group import Group
from jobmeter.kernel.hostfs import MemoryHints, read_memory_hints
from jobmeter.kernel.machine import Machine, read_text
from jobmeter.kernel.procfs import ProcessStatus, SmapsRollup
from jobmeter.kernel.tree import Process
from jobmeter.light_typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from jobmeter.kernel.shmem import OpenFiles

_NOISE = 1 << 20
"""Bytes by which the machine's shared memory or page tables may grow without a search."""
_SHARE = 0.02
"""The same, as a share of the job's memory."""
_DOUBT = 4 << 20
"""Bytes: figures are doubtful if more shared memory than this grew on the machine and was not attributed to the job."""
_SECONDS_PER_PROCESS = 60e-6
_MOST_CREATORS = 10_000


Uncounted = tuple[Union[int, None], Union[int, None]]
"""Huge pages, None if the machine has none; and all memory of the job with the uncounted, None if it is not known."""


class UncountedMemory:
    """Finds the uncounted memory of a job, without a cgroup (`group` is None) or with one."""

    def __init__(self, machine: Machine, group: Group | None, statuses: Statuses) -> None:
        self._machine = machine
        self._statuses = statuses
        self._group = group if group is not None and group.memory_peak() is not None else None
        self._at_first = self._hints()
        self._on_demand = _pages_on_demand(machine)
        self._allowance = Allowance(share=0.01, at_first=0.05)
        self._began = time.time()
        self._creators: set[int] = set()
        self._largest = 0
        self._unattributed = 0
        self._looked_at: tuple[object, ...] = ()
        self._last_search: tuple[list[ProcessStatus], OpenFiles]
        self.is_stale = False  # something may have changed and could not be read yet
        self._uses_it = False  # the job uses shared memory or huge pages

    def _hints(self) -> MemoryHints:
        try:
            return read_memory_hints(self._machine)
        except (OSError, ValueError):
            return MemoryHints(0, 0, 0, 0, 0)

    @property
    def doubtful(self) -> bool:
        """Whether the job uses such memory, and the machine's grew by clearly more than was attributed to the job."""
        return self._uses_it and self._unattributed > max(_DOUBT, 0.05 * self._largest)

    def update(self, alive: list[Process], shares: list[SmapsRollup], *, moved: bool) -> Uncounted | None:
        """The uncounted memory now; None if there is none to search for, or a search would cost too much.

        `shares` may be empty. `moved`: a process has left the group.
        """
        hints = self._hints()
        resident = sum(process.stat.rss for process in alive)
        self._largest = max(self._largest, resident)
        pool = hints.hugetlb_pool > 0 or self._on_demand
        if self._group is not None:
            looked_for = pool or hints.swapped or moved
            return self._beside_group(self._group, hints, alive, shares, pool) if looked_for else None
        self._remember(alive)
        noise = max(_NOISE, _SHARE * resident)
        shmem_grown, tables_grown, swap_grown = (
            now - first > noise
            for now, first in zip(
                (hints.shmem, hints.page_tables, hints.swapped),
                (self._at_first.shmem, self._at_first.page_tables, self._at_first.swapped),
            )
        )
        if not (pool or shmem_grown or tables_grown or swap_grown):
            return None
        mark = _mark(hints, alive, noise)
        if pool or mark != self._looked_at:
            search = self._look(alive, with_files=pool or shmem_grown)
            if search is None:
                return None
            self._looked_at, self._last_search = mark, search
        statuses, files = self._last_search
        hugetlb = self._hugetlb(hints, alive, statuses, files) if pool else None
        extra = sum((status.swap or 0) + status.page_tables for status in statuses) + (hugetlb or 0)
        if shmem_grown:
            extra += self._unmapped(hints, statuses, files, shares)
        base = sum(share.pss for share in shares) if shares else resident if len(alive) == 1 else None
        return hugetlb, None if base is None else base + extra

    def _beside_group(
        self, group: Group, hints: MemoryHints, alive: list[Process], shares: list[SmapsRollup], pool: bool
    ) -> Uncounted | None:
        memory = group.memory()
        if memory is None:
            return None
        hugetlb = group.hugetlb() if pool else None
        if pool and hugetlb is None and (search := self._look(alive)) is not None:
            hugetlb = self._hugetlb(hints, alive, *search)
        # A process that is moved leaves its charges in the group: its memory may be in both figures.
        base = max(memory.current - memory.file, sum(share.pss for share in shares))
        extra = (memory.swap or 0) + (0 if memory.with_hugetlb else hugetlb or 0)
        return hugetlb, base + extra

    def _look(self, alive: list[Process], *, with_files: bool = True) -> tuple[list[ProcessStatus], OpenFiles] | None:
        """Read status, and maybe the open files, of each process; None if that would cost too much now."""
        from jobmeter.kernel.shmem import OpenFiles, open_memory_files

        to_read = alive if with_files else self._statuses.stale(alive)
        self.is_stale = not self._allowance.covers(len(to_read) * _SECONDS_PER_PROCESS)
        if self.is_stale:
            return None
        statuses = []
        with self._allowance:
            for process in alive:
                try:
                    statuses.append(self._statuses.read(process))
                except (OSError, ValueError):
                    continue  # it ended
            pids = [process.identity.pid for process in alive] if with_files else []
            files = open_memory_files(self._machine, pids) if pids else OpenFiles(0, 0)
        return statuses, files

    def _hugetlb(
        self, hints: MemoryHints, alive: list[Process], statuses: list[ProcessStatus], files: OpenFiles
    ) -> int:
        """Huge pages of the job; what several processes map is counted once, as the largest share."""
        mapped = sum(status.hugetlb for status in statuses)
        if sum(status.hugetlb > 0 for status in statuses) > 1:
            rollups = [rollup for process in alive if (rollup := self._rollup(process)) is not None]
            mapped = sum(r.private_hugetlb for r in rollups) + max([r.shared_hugetlb for r in rollups], default=0)
        # Open files may be mapped or not: how many pages are in both figures is unknown.
        hugetlb = max(mapped, files.hugetlb)
        self._uses_it |= hugetlb > 0
        self._unattributed = max(self._unattributed, hints.hugetlb_used - self._at_first.hugetlb_used - hugetlb)
        return hugetlb

    def _rollup(self, process: Process) -> SmapsRollup | None:
        try:
            return procfs.read_smaps_rollup(self._machine, process.identity.pid)
        except (OSError, ValueError):
            return None  # another user's process, or it has ended

    def _unmapped(
        self, hints: MemoryHints, statuses: list[ProcessStatus], files: OpenFiles, shares: list[SmapsRollup]
    ) -> int:
        """Shared memory that no process of the job maps. Also notes growth that could not be attributed to the job."""
        resident = sum(status.shmem for status in statuses)
        mapped = sum(share.shmem for share in shares) if shares else resident
        segments = self._segments()
        self._uses_it |= resident + files.shmem + segments > 0
        grown = hints.shmem - self._at_first.shmem
        # Some of the mapped memory may be of these files, and some of the files may be older than the job.
        unmapped = min(max(files.shmem - resident, 0) + segments, max(grown - mapped, 0))
        self._unattributed = max(self._unattributed, grown - mapped - unmapped)
        return unmapped

    def _remember(self, alive: list[Process]) -> None:
        """Note the processes that may have made a segment of shared memory that outlives them."""
        if len(self._creators) < _MOST_CREATORS:
            self._creators.update(process.identity.pid for process in alive)

    def _segments(self) -> int:
        from jobmeter.kernel.shmem import unattached_segment_bytes

        return unattached_segment_bytes(self._machine, self._creators)

    def check_at_end(self) -> None:
        """Check, after the job has ended, for shared memory that it left: no process held it at the end.

        The shared memory of others grows and shrinks all the time, so new files count only if they are this user's.
        """
        if self._group is not None:
            return
        grown = self._hints().shmem - self._at_first.shmem
        if grown > _DOUBT:
            from jobmeter.kernel.shmem import has_new_file

            self._unattributed = max(self._unattributed, grown - self._segments())
            self._uses_it = self._uses_it or has_new_file(self._machine, os.getuid(), self._began)


def _mark(hints: MemoryHints, alive: list[Process], noise: float) -> tuple[object, ...]:
    """A value that changes when a search may have another result: the machine's amounts, roughly, and the processes."""
    amounts = (hints.shmem, hints.page_tables, hints.swapped, hints.hugetlb_used)
    return (*(round(2 * amount / noise) for amount in amounts), tuple(process.identity for process in alive))


def _pages_on_demand(machine: Machine) -> bool:
    """Whether the kernel may make huge pages on demand."""
    try:
        return int(read_text(f"{machine.proc}/sys/vm/nr_overcommit_hugepages")) > 0
    except (OSError, ValueError):
        return False
