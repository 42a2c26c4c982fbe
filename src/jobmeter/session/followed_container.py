"""A running container until its end: the part that launched and already running containers have in common."""

from __future__ import annotations

import os
import signal

from jobmeter.analyse.outcome import outcome
from jobmeter.collectors.contract import Target
from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.container import ContainerGroup
from jobmeter.kernel.cgroup.parent import ParentGroup
from jobmeter.launch.container.instance import Container
from jobmeter.launch.container.supervisor import ContainerSupervisor
from jobmeter.model import Outcome
from jobmeter.session.measuring import Measuring

_AT_THE_LIMIT = 0.99


class FollowedContainer:
    """A container's first process, its cgroup and, from `follow` on, the supervisor that waits for its end."""

    def __init__(
        self, container: Container, measuring: Measuring, *, image: str, pid: int, parent: ParentGroup | None = None
    ) -> None:
        """`pid` is the first process as numbered here, or 0. `parent` is a cgroup made above the container's."""
        self.group: ContainerGroup | None = None
        self.supervisor: ContainerSupervisor | None = None
        self._container = container
        self._measuring = measuring
        self._pid = pid
        try:
            self.group = container.group(parent, pid, measuring.machine)
        except NoData as reason:
            measuring.sources.why_not["cgroup"] = str(reason)
        runtime = container.runtime
        measuring.provenance["container"] = {
            "image": image,
            "engine": runtime.name.lower(),
            "engine_version": runtime.version,
            "id": container.id,
        }

    def target(self) -> Target:
        return Target(
            root=self._pid,
            main=self._pid,
            root_is_job=True,
            group=self.group,
            machine=self._measuring.machine,
            container=self._container,
        )

    def follow(self, *, time_limit: float | None = None, heeds_sigterm: bool = True) -> ContainerSupervisor:
        """Start the supervisor that waits for the end of the container."""
        self.supervisor = ContainerSupervisor(
            self._container.runtime,
            self._container.id,
            self._measuring.machine,
            pid=self._pid,
            time_limit=time_limit,
            heeds_sigterm=heeds_sigterm,
            at_exit=self._read_at_exit,
        )
        return self.supervisor

    def supervised(self) -> ContainerSupervisor:
        assert self.supervisor is not None, "it was not started"
        return self.supervisor

    def _read_at_exit(self) -> None:
        """Take a last sample: every process has ended, and the container runtime is about to remove the cgroup."""
        if self.group is not None:
            self.group.read_last()
        self._measuring.watch.end_levels()
        self._measuring.watch.sample_now()

    def outcome(self, memory_limit: int | None) -> Outcome:
        """How the container ended; `lost` if that is not known."""
        supervisor = self.supervised()
        kills = (self.group.oom_kills() if self.group else None) or 0
        if not kills and (supervisor.state is not None and supervisor.state.oom_killed):
            kills = 1
        if not kills and self._killed_at_its_limit(supervisor, memory_limit):
            kills = 1
        return outcome(supervisor.wait_status, ended_by=supervisor.ended_by, oom_kills=kills)

    def _killed_at_its_limit(self, supervisor: ContainerSupervisor, limit: int | None) -> bool:
        """Whether SIGKILL, not from us, ended a container at its limit: Podman on cgroup v1 reports no OOM kill."""
        status, peak = supervisor.wait_status, self.group.memory_peak() if self.group else None
        killed = status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        at_limit = limit is not None and peak is not None and peak >= limit * _AT_THE_LIMIT
        return killed and at_limit and supervisor.ended_by is None

    def close(self) -> None:
        if self.supervisor is not None:
            self.supervisor.close()
        if self.group is not None:
            self.group.close()
