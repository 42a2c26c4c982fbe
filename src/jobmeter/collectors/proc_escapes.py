"""Processes of the tree that escape another source: they left the job's cgroup, or changed to another user."""

from __future__ import annotations

import os
from collections.abc import Set

from jobmeter.collectors.allowance import Allowance
from jobmeter.collectors.contract import Target
from jobmeter.kernel.cgroup.group import enclosing_cpu_account
from jobmeter.kernel.cgroup.members import Membership
from jobmeter.kernel.procfs import Identity
from jobmeter.kernel.tree import Process

_MEMORY_GROUPS, _CPU_GROUPS = frozenset({"memory", ""}), frozenset({"cpuacct", ""})
CGROUP_MEMORY = frozenset(
    f"cgroup_{name}"
    for name in ("mem_peak", "mem_current", "anon", "file", "held", "working_set", "swap", "hugetlb", "hugetlb_peak")
)
_CGROUP_CPU = frozenset(f"cgroup_cpu_{name}" for name in ("seconds", "user_seconds", "system_seconds", "percent"))
_OUTER_CPU = "cgroup_outer_cpu_seconds"
_PERF = frozenset(f"perf_{name}" for name in ("cpu_seconds", "page_faults", "ctx_switches", "instructions", "cycles"))
_MOST_OF_OTHER_USERS = 0.02
"""The share of the job's CPU time that processes of other users may use before perf counts as incomplete."""
_BLUR_TICKS = 5


class Escapes:
    """The processes that escaped so far, and the keys of other sources that therefore miss something."""

    def __init__(self, target: Target) -> None:
        group = target.group
        self._membership = Membership(target.machine, group.directories()) if group is not None else None
        self._outer_membership = _outer_membership(target)
        self._while_quiet = Allowance(share=0.00025, at_first=0.002)
        self._other_users_ticks: dict[Identity, int] = {}  # CPU time, by process

    def update(self, alive: list[Process]) -> None:
        """Check which of the processes are still in the job's cgroup, or in that of jobmeter."""
        for membership in (self._membership, self._outer_membership):
            if membership is not None:
                membership.update(alive)

    def update_while_quiet(self, alive: list[Process]) -> None:
        """The same while nothing ran in the job's cgroup: a process that was moved to another one may run there.

        For a few processes at every call, for 500 every few seconds.
        """
        if self._while_quiet.covers():
            with self._while_quiet:
                self.update(alive)

    def add_other_user(self, process: Process) -> None:
        """Note a process of another user: it executed a setuid program, and perf events do not follow it there."""
        stat = process.stat
        self._other_users_ticks[process.identity] = stat.user + stat.system + stat.children_user + stat.children_system

    def has_other_user(self, processes: Set[Identity]) -> bool:
        """Whether one of these processes is of another user."""
        return bool(self._other_users_ticks) and bool(self._other_users_ticks.keys() & processes)

    @property
    def left_memory_group(self) -> bool:
        """Whether a process left the group that counts memory."""
        return self._membership is not None and bool(self._membership.left & _MEMORY_GROUPS)

    @property
    def left_cpu_group(self) -> bool:
        """Whether a process left the group that counts CPU time."""
        return self._membership is not None and bool(self._membership.left & _CPU_GROUPS)

    def incomplete(self, cpu_ticks: int) -> set[str]:
        """The keys of other sources that miss something; `cpu_ticks` is the CPU time of the whole tree."""
        keys: set[str] = set()
        if self.left_memory_group:
            keys |= CGROUP_MEMORY
        if self.left_cpu_group:
            keys |= _CGROUP_CPU
        if self._outer_membership is not None and self._outer_membership.left:
            keys.add(_OUTER_CPU)
        if sum(self._other_users_ticks.values()) > _MOST_OF_OTHER_USERS * cpu_ticks + _BLUR_TICKS:
            keys |= _PERF
        return keys


def _outer_membership(target: Target) -> Membership | None:
    """For a job without a cgroup: checks that its processes stay in that of jobmeter, which bounds their CPU time."""
    if target.group is not None or target.root_is_job:
        return None
    account = enclosing_cpu_account(target.machine)
    # The root of a mount needs no check: every process is below it.
    below_top = {controller: path for controller, path in account.items() if not os.path.ismount(path)}
    return Membership(target.machine, below_top) if below_top else None
