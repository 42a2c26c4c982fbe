"""One container: its container runtime, its first process and its cgroups."""

from __future__ import annotations

import os
import time

from jobmeter.collectors.container import ContainerStats
from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.container import ContainerGroup
from jobmeter.kernel.cgroup.group import Group
from jobmeter.kernel.cgroup.parent import ParentGroup, group_of
from jobmeter.kernel.machine import Machine, read_text
from jobmeter.launch.container.client import RuntimeUnreachable
from jobmeter.launch.container.runtime import ContainerRuntime, ContainerState

_LOOK = 0.2
_LATE = 1.0
"""Seconds by which a container runtime may record the start of a container later than its end."""


class Container:
    """A container of a container runtime; collectors read its stats."""

    def __init__(
        self, runtime: ContainerRuntime, container: str, *, network: str | None = None, already_ran: bool = False
    ) -> None:
        self.runtime = runtime
        self.id = container
        self.already_ran = already_ran
        self.has_own_network = not (network or "").startswith(("container:", "ns:"))

        self._has_own_group = True

    def stats(self) -> ContainerStats | None:
        stats = self.runtime.stats(self.id)
        return stats if stats is None or self._has_own_group else stats.of_network()

    def remove(self, patience: float = 0.0) -> None:
        """Remove it, running or not. Raises LaunchError if it is refused, or unanswered for `patience` seconds."""
        deadline = time.monotonic() + patience
        while True:
            try:
                return self.runtime.remove(self.id)
            except RuntimeUnreachable:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_LOOK)

    def visible_pid(self, state: ContainerState, machine: Machine) -> int:
        """The pid of its first process, if that is visible here; else 0.

        A container runtime may be in a virtual machine, or outside the pid namespace of this process: then the pid that
        it reports belongs to another process here.
        """
        if not state.pid or not self.runtime.is_local:
            return 0
        try:
            if self.id in read_text(f"{machine.proc}/{state.pid}/cgroup"):
                return state.pid
        except OSError:
            return 0
        # A rootless container is in a cgroup of its caller. Podman reports the figures of that cgroup, or of the whole
        # machine, as the container's.
        self._has_own_group = False
        return state.pid if _is_first(machine, state.pid) else 0

    def first_process(self, parent: ParentGroup, machine: Machine) -> int:
        """The same, from the cgroup below `parent`, without a request to the container runtime; 0 if unknown."""
        try:
            return next((pid for pid in self._own_group(parent).processes() if _is_first(machine, pid)), 0)
        except OSError:
            return 0

    def _own_group(self, parent: ParentGroup) -> Group:
        return parent.below(f"libpod-{self.id}" if self.runtime.is_podman else self.id)

    def group(self, parent: ParentGroup | None, pid: int, machine: Machine) -> ContainerGroup:
        """Its cgroup accounts, from `parent` and its own cgroup. Raises NoData if neither can be read."""
        if parent is not None and parent.group.cpu_nanoseconds():
            own = self._own_group(parent)
            helpers = parent.below("conmon") if self.runtime.is_podman else None
            if helpers is not None and not os.path.isdir(helpers.path):
                helpers = None
            return ContainerGroup(parent.group, own, helpers)
        if not pid:
            raise NoData("the container's cgroup is not visible here")
        return ContainerGroup(None, group_of(machine, pid, self.id), from_now=self.already_ran)


def _is_first(machine: Machine, pid: int) -> bool:
    """Whether it is the first process of a pid namespace below ours."""
    try:
        lines = read_text(f"{machine.proc}/{pid}/status").splitlines()
    except OSError:
        return False
    words = next((line.split() for line in lines if line.startswith("NSpid:")), [])
    return len(words) > 2 and words[-1] == "1"


def running_seconds(state: ContainerState | None) -> float | None:
    """How long a container ran, by the container runtime's clock; None if unknown, or if that clock was set in between.

    If a container ends at once, Podman records the end first and the start after it.
    """
    if state is None or state.started is None or state.finished is None:
        return None
    seconds = state.finished - state.started
    return max(seconds, 0.0) if seconds > -_LATE else None


def monotonic_start(state: ContainerState, requested_at: float) -> float:
    """The monotonic time of its start: never before the request, even if the container runtime's clock differs."""
    now = time.monotonic()
    if state.started is None:
        return now
    return min(max(now - (time.time() - state.started), requested_at), now)
