"""A container that already runs: measured from now until it ends, or `stop`."""

from __future__ import annotations

from typing import Any

from jobmeter.launch.container.info import enforced_limits, limits, running_container
from jobmeter.launch.container.instance import Container
from jobmeter.launch.container.runtime import ContainerRuntime, open_runtime
from jobmeter.model import Outcome, Status
from jobmeter.session.followed_container import FollowedContainer
from jobmeter.session.measuring import JobEnd, Measuring, OpenJob


class RunningContainer:
    """A running container, which is only observed. Counters begin now; peaks cover its whole life. See `JobControl`."""

    in_container = True

    def __init__(self, container: str, *, engine: str = "auto") -> None:
        self._name = container
        self._engine = engine
        self._measuring: Measuring
        self._runtime: ContainerRuntime
        self._inspection: dict[str, Any]
        self._followed: FollowedContainer | None = None

    def prepare(self, measuring: Measuring) -> None:
        """Raises LaunchError if the container runtime does not answer, UsageError if no such container runs."""
        self._measuring = measuring
        self._runtime = open_runtime(self._engine)
        try:
            self._inspection = running_container(self._runtime, self._name)
        except BaseException:
            self._runtime.close()
            raise

    def open(self) -> OpenJob:
        config, requirement = self._inspection["Config"], limits(self._inspection)
        network = (self._inspection.get("HostConfig") or {}).get("NetworkMode")
        container = Container(self._runtime, str(self._inspection["Id"]), network=network, already_ran=True)
        pid = container.visible_pid(self._runtime.state(container.id), self._measuring.machine)
        self._followed = FollowedContainer(container, self._measuring, image=config.get("Image", ""), pid=pid)
        self._measuring.enforced = enforced_limits(requirement)
        command = [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])]
        directory = config.get("WorkingDir") or ""
        return OpenJob(self._followed.target(), command or [self._name], directory, requirement, name=self._name)

    def run(self) -> None:
        self._container().follow()

    def wait(self) -> None:
        self._container().supervised().wait()

    def stop(self, *, at_once: bool) -> None:
        """Stop measuring; the container keeps running."""
        self._container().supervised().abandon()

    def end(self) -> JobEnd:
        followed = self._container()
        if not followed.supervised().abandoned:
            return JobEnd()
        return JobEnd(left_running=max(len(followed.group.processes()) if followed.group else 0, 1))

    def outcome(self) -> Outcome:
        followed = self._container()
        if followed.supervised().abandoned:
            return Outcome(Status.DETACHED)
        return followed.outcome(limits(self._inspection).memory_bytes)

    def close(self) -> None:
        if self._followed is not None:
            self._followed.close()
        self._runtime.close()

    def _container(self) -> FollowedContainer:
        assert self._followed is not None, "it was not started"
        return self._followed
