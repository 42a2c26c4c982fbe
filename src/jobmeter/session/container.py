"""A command in a container that is created for it."""

from __future__ import annotations

import contextlib
import threading
import time

from jobmeter.analyse.headline import CpuSpan
from jobmeter.analyse.headline_memory import memory_now
from jobmeter.errors import JobmeterError, NoData
from jobmeter.kernel.cgroup.parent import ParentGroup, create_parent
from jobmeter.kernel.machine import cpu_count
from jobmeter.launch.container import spec as container_spec
from jobmeter.launch.container.client import RequestRefused, RuntimeUnreachable
from jobmeter.launch.container.info import enforced_limits, limits
from jobmeter.launch.container.instance import Container, monotonic_start, running_seconds
from jobmeter.launch.container.leftovers import labels, leftovers
from jobmeter.launch.container.runtime import ContainerRuntime, ContainerState, open_runtime
from jobmeter.launch.container.streams import StreamRelay, input_of, open_relay
from jobmeter.launch.container.supervisor import ContainerSupervisor
from jobmeter.launch.signals import ENDING
from jobmeter.meter.watch import Sample
from jobmeter.model import Outcome, Status
from jobmeter.session.container_job import ContainerJob, check_job
from jobmeter.session.followed_container import FollowedContainer
from jobmeter.session.measuring import JobEnd, Measuring, OpenJob
from jobmeter.session.outputs import check_outputs

_RUNTIME_PATIENCE = 30.0
"""Seconds to try to remove a container that could not be started: its container runtime may have been restarted."""
_REST_OF_OUTPUT = 10.0
"""Seconds of silence after which no more output of a container that has ended is expected."""
_LITTLE_START = 1.0
"""Seconds from which on a run is so long that the 30 ms of CPU time for the start of its container are negligible."""
_NO_PROCESS = "no process of the container is visible here, or it has already ended"


class LaunchedContainer:
    """A container that is created, started and removed here. See `session.contract.JobControl`."""

    in_container = True

    def __init__(self, job: ContainerJob) -> None:
        """Raises UsageError if an option is not valid."""
        check_job(job)
        self._job = job
        self._measuring: Measuring
        self._runtime: ContainerRuntime
        self._command: list[str]
        self._watched_limit: int | None = None  # bytes; checked at each sample where the kernel enforces no limit
        self._stdin: int | None = None
        self._parent: ParentGroup | None = None
        self._container: Container | None = None
        self._relay: StreamRelay | None = None
        self._followed: FollowedContainer | None = None
        self._first_look: tuple[float, float] | None = None  # when, and the CPU time used until then
        self._running = threading.Event()

    def prepare(self, measuring: Measuring) -> None:
        """Connect to the container runtime and fetch the image."""
        self._measuring = measuring
        options, runtime = self._job.container, open_runtime(self._job.container.engine)
        try:
            image_command = runtime.image_command(options.image, options.pull, measuring.warn)
            if runtime.is_local:
                container_spec.check_mounts(options)
            self._warn_of_leftovers(runtime)
        except BaseException:
            runtime.close()
            raise
        self._runtime = runtime
        self._command = self._job.command or image_command
        if options.entrypoint is not None:
            self._command = [options.entrypoint, *self._job.command]

    def _warn_of_leftovers(self, runtime: ContainerRuntime) -> None:
        left = leftovers(runtime, self._measuring.machine)
        if left:
            names = ", ".join(container.name for container in left[:3]) + (" …" if len(left) > 3 else "")
            how_many = "a container" if len(left) == 1 else f"{len(left)} containers"
            self._measuring.warn(
                f"a jobmeter that was killed left {how_many} ({names}). `jobmeter doctor --clean` removes them."
            )

    def open(self) -> OpenJob:
        self._requested_at = time.monotonic()
        container = self._create()
        self._measuring.sources.check_ahead()
        return self._start(container)

    def _create(self) -> Container:
        """Create the container, below a cgroup made for this run where that is possible."""
        job, runtime = self._job, self._runtime
        self._parent = self._make_parent()
        self._stdin = input_of(job.streams)
        container = runtime.create(
            job.container,
            job.command,
            requirement=job.requirement,
            parent=self._parent.path if self._parent else None,
            labels=labels(self._measuring.id, self._measuring.machine),
            name=job.container.container_name or f"jobmeter-{self._measuring.id}",
            stdin=self._stdin is not None,
        )
        self._container = Container(runtime, container, network=job.container.network)
        self._check_limits(container)
        return self._container

    def _make_parent(self) -> ParentGroup | None:
        if not self._measuring.sources.wants("cgroup"):
            return None
        why = self._runtime.why_no_parent()
        try:
            if why is None:
                return create_parent(self._measuring.machine, self._measuring.id)
        except NoData as reason:
            why = str(reason)
        self._measuring.provenance["cgroup_parent"] = f"none: {why}"
        return None

    def _check_limits(self, container: str) -> None:
        """Warn of limits that were not set: a rootless Podman on cgroup v1 ignores them."""
        requirement, name = self._job.requirement, self._runtime.name
        if requirement.cpus is None and requirement.memory_bytes is None:
            return
        limits_set = limits(self._runtime.inspect(container))
        self._measuring.enforced = enforced_limits(limits_set)
        if requirement.memory_bytes is not None and limits_set.memory_bytes is None:
            self._watched_limit = requirement.memory_bytes
            self._measuring.warn(
                f"{name} does not enforce a memory limit here: jobmeter checks it at each sample instead"
            )
        if requirement.cpus is not None and limits_set.cpus is None:
            self._measuring.warn(f"{name} does not enforce a CPU limit here: --cpus is a request only")

    def _start(self, container: Container) -> OpenJob:
        runtime, machine = self._runtime, self._measuring.machine
        connection = runtime.attach(container.id, self._command, stdin=self._stdin is not None)
        self._relay = open_relay(connection, self._job.streams, self._stdin, self._on_output_closed)
        runtime.start(container.id, self._command)
        started = time.monotonic()
        # The container runs: find its first process in the cgroup, and request its state only if that fails.
        pid = container.first_process(self._parent, machine) if self._parent is not None else 0
        state = None if pid else runtime.state(container.id)
        if state is not None:
            pid, started = container.visible_pid(state, machine), monotonic_start(state, self._requested_at)
        if not pid:
            for collector in ("proc", "perf"):
                self._measuring.sources.why_not[collector] = _NO_PROCESS
        self._pid, self._start_state = pid, state
        image = self._job.container.image
        self._followed = FollowedContainer(container, self._measuring, image=image, pid=pid, parent=self._parent)
        self._look_first(state)
        return OpenJob(
            self._followed.target(),
            self._command,
            self._job.container.directory or "",
            self._job.recorded_requirement,
            started=started,
            on_levels=self._check_memory,
        )

    def _look_first(self, state: ContainerState | None) -> None:
        """Read the CPU time that was used for the start of the container, before its command uses any."""
        group, now = self._started_container().group, time.monotonic()
        if group is None:
            return
        if state is not None and not state.running:
            group.read_last()
        elif (cpu := group.cpu()) is not None:
            self._first_look = now, cpu.total

    def run(self) -> None:
        followed, watch = self._started_container(), self._measuring.watch
        followed.follow(time_limit=self._job.requirement.runtime_seconds, heeds_sigterm=self._job.heeds_sigterm)
        if self._pid:
            watch.sample_now()
        if self._relay is not None:
            self._relay.start()
        if self._start_state is None and self._container is not None:
            with contextlib.suppress(RuntimeUnreachable, RequestRefused):
                watch.started = monotonic_start(self._runtime.state(self._container.id), self._requested_at)
        startup_seconds = max(watch.started - self._requested_at, 0.0)
        self._measuring.provenance["container"]["startup_seconds"] = round(startup_seconds, 3)
        self._running.set()

    def wait(self) -> None:
        self._supervisor().wait()

    def receive(self, number: int, from_terminal: bool) -> None:
        """Forward a signal to the container, once it runs."""
        self._running.wait()
        if number in ENDING and (relay := self._relay) is not None:
            relay.hurry()
        self._supervisor().receive(number, from_terminal)

    def stop(self, *, at_once: bool) -> None:
        """End the container."""
        self._supervisor().end(Status.CANCELLED, at_once=at_once)

    def _started_container(self) -> FollowedContainer:
        assert self._followed is not None, "it was not started"
        return self._followed

    def _supervisor(self) -> ContainerSupervisor:
        return self._started_container().supervised()

    def _on_output_closed(self) -> None:
        self._supervisor().nobody_reads()

    def _check_memory(self, sample: Sample) -> None:
        """End a container that exceeds its memory limit, where the kernel does not enforce it."""
        used = None if self._watched_limit is None else memory_now(sample.values)
        if used is not None and self._watched_limit is not None and used > self._watched_limit:
            supervisor = self._started_container().supervisor
            if supervisor is not None:
                supervisor.end(Status.OOM, at_once=True)

    def end(self) -> JobEnd:
        supervisor = self._supervisor()
        if self._relay is not None:
            if supervisor.ended_by is not None:
                self._relay.hurry()
            self._relay.finish(_REST_OF_OUTPUT)
            self._relay = None
        if supervisor.state is None:
            self._measuring.warn(f"{self._runtime.name} has no information about the container any more")
        wall_seconds = self._wall_seconds(supervisor)
        return JobEnd(
            wall_seconds=wall_seconds,
            cpu_span=self._cpu_span(supervisor, wall_seconds),
            # Without a cgroup of its own, it was first read after its start.
            complete=self._started_container().group is not None,
        )

    def _wall_seconds(self, supervisor: ContainerSupervisor) -> float | None:
        """How long the container ran; at least its CPU time over all CPUs, as some of that is from before its start."""
        group = self._started_container().group
        seconds, cpu = running_seconds(supervisor.state), group.cpu() if group else None
        if seconds is None and supervisor.ended_at is not None:
            seconds = supervisor.ended_at - self._measuring.watch.started
        return seconds if seconds is None or cpu is None else max(seconds, cpu.total / cpu_count())

    def _cpu_span(self, supervisor: ContainerSupervisor, wall: float | None) -> CpuSpan:
        """What the mean CPU is taken over: from the first look to the end, without the CPU time used for the start.

        If that CPU time is unknown, it is negligible only in a run of a second or more; a shorter run has no mean.
        """
        most = 100.0 * self._runtime.cpus
        if self._first_look is None or supervisor.ended_at is None:
            return CpuSpan(wall if wall is not None and wall >= _LITTLE_START else 0.0, most_percent=most)
        looked_at, used = self._first_look
        return CpuSpan(supervisor.ended_at - looked_at, cpu_before=used, most_percent=most)

    def outcome(self) -> Outcome:
        result = self._started_container().outcome(self._job.requirement.memory_bytes)
        return check_outputs(result, self._job.outputs, self._measuring)

    def close(self) -> None:
        """Remove the container and its cgroup. A container that cannot be removed is found by its labels later."""
        if self._relay is not None:
            self._relay.finish(0.0)
            self._relay = None
        if self._followed is not None:
            self._followed.close()
        if self._container is not None:
            try:
                # If it could not be started, its container runtime may have been restarted just then.
                self._container.remove(0.0 if self._running.is_set() else _RUNTIME_PATIENCE)
            except JobmeterError as error:
                name = self._container.id[:12]
                self._measuring.warn(f"the container {name} stays until `jobmeter doctor --clean` removes it. {error}")
        if self._parent is not None:
            self._parent.group.close()
            self._parent.remove()
        self._runtime.close()
