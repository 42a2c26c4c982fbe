"""A run of a command in a container that is made for it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobmeter.analyse.headline import CpuSpan, memory_now
from jobmeter.collectors.container import with_container
from jobmeter.collectors.contract import Ending, Target
from jobmeter.errors import JobmeterError, NoData
from jobmeter.kernel.cgroup.container import ContainerGroup
from jobmeter.kernel.cgroup.parent import Parent, create_parent
from jobmeter.kernel.machine import THIS_MACHINE, Machine, cpu_count
from jobmeter.launch.container import spec as container_spec
from jobmeter.launch.container.client import EngineGone, EngineRefused
from jobmeter.launch.container.info import kept_limits, limits
from jobmeter.launch.container.instance import Container, monotonic_start, running_seconds
from jobmeter.launch.container.leftovers import labels, leftovers
from jobmeter.launch.container.runtime import Engine, open_engine
from jobmeter.launch.container.streams import Passage, input_of, open_passage
from jobmeter.launch.container.supervisor import ContainerSupervisor
from jobmeter.launch.signals import ENDING
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample
from jobmeter.model import Outcome
from jobmeter.session.container_end import judge_end
from jobmeter.session.container_job import ContainerJob, check_job
from jobmeter.session.measuring import USUAL, MeasureOptions, Measuring, ignore
from jobmeter.session.outputs import judged_by_outputs

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_ENGINE_PATIENCE = 30.0
"""Seconds in which an engine that was restarted while it started a container can remove it."""
_REST_OF_OUTPUT = 10.0
"""Seconds of silence after which an engine passes on nothing more of what a container wrote before its end."""

_LITTLE_START = 1.0
"""Seconds of a run of which the 30 ms of CPU that a runtime takes for its start are little."""


class ContainerSession:
    """`start` it, then `wait` for its record; as `session.run.Session`, for a container."""

    def __init__(
        self,
        job: ContainerJob,
        options: MeasureOptions = USUAL,
        *,
        meter: Meter | None = None,
        machine: Machine = THIS_MACHINE,
        warn: Callable[[str], None] = ignore,
        on_sample: Callable[[Sample], None] = ignore,
    ) -> None:
        """UsageError, before anything is started, for options that mean nothing."""
        check_job(job)
        self.outcome: Outcome
        self._job = job
        self._machine = machine
        self._warn = warn
        options = options._replace(measurements=with_container(options.measurements))
        self._measuring = Measuring(
            options, meter=meter, machine=machine, warn=warn, on_sample=self._look_at, on_peek=self._keep_limit
        )
        self._on_sample = on_sample
        self._watched_limit: int | None = None  # bytes, where the kernel keeps no limit
        self._engine: Engine | None = None
        self._command: list[str] = []
        self._stdin: int | None = None
        self._parent: Parent | None = None
        self._group: ContainerGroup | None = None
        self._container: Container | None = None
        self._passage: Passage | None = None
        self._supervisor: ContainerSupervisor | None = None
        self._first_look: tuple[float, float] | None = None  # when, and the CPU time used until then
        self._started = threading.Event()

    @property
    def id(self) -> str:
        return self._measuring.id

    @property
    def journal_path(self) -> str | None:
        return self._measuring.journal.path if self._measuring.journal is not None else None

    def prepare(self) -> None:
        """Find the engine and fetch the image, which may take long; `start` does it too, if it was not done.

        Nothing is made yet that would have to be removed.
        """
        if self._engine is not None:
            return
        job, engine = self._job, open_engine(self._job.container.engine)
        try:
            own = engine.image_command(job.container.image, job.container.pull, self._warn)
            if engine.is_local:
                container_spec.check_mounts(job.container)
            self._tell_leftovers(engine)
        except BaseException:
            engine.close()
            raise
        self._engine = engine
        self._command = job.command or own
        if job.container.entrypoint is not None:
            self._command = [job.container.entrypoint, *job.command]

    def start(self) -> None:
        """Start the container. JobmeterError when it cannot be; then nothing is left of it."""
        self.prepare()
        asked_at = time.monotonic()
        try:
            self._launch(self._create(), asked_at)
        except BaseException:
            if self._supervisor is not None:
                self._supervisor.close()
            self._clean_up(patience=_ENGINE_PATIENCE)
            raise
        self._started.set()
        self._measuring.sync()

    def _create(self) -> Container:
        """Make the container, below a cgroup of this run's own where that can be."""
        job, engine = self._job, self._reached()
        self._parent = self._make_parent()
        self._stdin = input_of(self._job.streams)
        container = engine.create(
            job.container,
            job.command,
            requirement=job.requirement,
            parent=self._parent.path if self._parent else None,
            labels=labels(self.id, self._machine),
            name=job.container.container_name or f"jobmeter-{self.id}",
            stdin=self._stdin is not None,
        )
        self._container = Container(engine, container, network=job.container.network)
        self._check_limits(engine, container)
        return self._container

    def _check_limits(self, engine: Engine, container: str) -> None:
        """Tell which limits the engine did not take: Podman ignores them where it is rootless on cgroup v1."""
        asked = self._job.requirement
        if asked.cpus is None and asked.memory_bytes is None:
            return
        taken = limits(engine.inspect(container))
        self._measuring.enforced = kept_limits(taken)
        if asked.memory_bytes is not None and taken.memory_bytes is None:
            self._watched_limit = asked.memory_bytes
            self._warn(f"{engine.name} sets no limit of memory here: it is watched at the interval instead")
        if asked.cpus is not None and taken.cpus is None:
            self._warn(f"{engine.name} sets no limit of CPU here: --cpus is only what is asked for")

    def _launch(self, container: Container, asked_at: float) -> None:
        engine = self._reached()
        self._measuring.check_ahead()
        connection = engine.attach(container.id, self._command, stdin=self._stdin is not None)
        self._passage = open_passage(connection, self._job.streams, self._stdin, self._nobody_reads)
        engine.start(container.id, self._command)
        started = time.monotonic()
        # It runs: what it holds now is read first, and its engine is asked after that.
        pid = container.first_process(self._parent, self._machine) if self._parent is not None else 0
        state = None if pid else engine.state(container.id)
        if state is not None:
            pid, started = container.visible_pid(state, self._machine), monotonic_start(state, asked_at)
        self._group = self._find_group(container, pid)
        if self._group is not None and state is not None and not state.running:
            self._group.last_look()
        else:
            self._first_look = self._look_first()
        self._measure(container, pid, started)
        self._passage.start()
        if state is None:
            with contextlib.suppress(EngineGone, EngineRefused):
                started = monotonic_start(engine.state(container.id), asked_at)
            self._measuring.watch.started = started
        self._measuring.more["container"]["startup_seconds"] = round(max(started - asked_at, 0.0), 3)

    def _look_first(self) -> tuple[float, float] | None:
        """The CPU time that was used before the command had any, for the start of its container; and when that was."""
        now = time.monotonic()
        cpu = self._group.cpu() if self._group is not None else None
        return None if cpu is None else (now, cpu.total)

    def _measure(self, container: Container, pid: int, started: float) -> None:
        job, measuring, engine = self._job, self._measuring, self._reached()
        if not pid:
            for collector in ("proc", "perf"):
                measuring.why_not[collector] = "no process of the container could be seen, or it had ended already"
        measuring.more["container"] = {
            "image": job.container.image,
            "engine": engine.name.lower(),
            "engine_version": engine.version,
            "id": container.id,
        }
        target = Target(
            root=pid, main=pid, root_is_job=True, group=self._group, machine=self._machine, container=container
        )
        measuring.begin(target, self._command, job.container.directory or "", job.requirement)
        measuring.watch.started = started
        try:
            self._supervisor = ContainerSupervisor(
                engine,
                container.id,
                self._machine,
                pid=pid,
                runtime=job.requirement.runtime_seconds,
                at_exit=self._look_last,
            )
            if pid:
                measuring.watch.sample_now()
            measuring.go()
        except BaseException:
            measuring.close(discard=True)
            raise

    def wait(self) -> Record:
        """Wait for the end of the container and return the run record; by then the container is gone."""
        supervisor = self._running()
        try:
            supervisor.wait()
        except BaseException:
            supervisor.end("cancelled", at_once=True)
            supervisor.wait()
            self._conclude(supervisor)
            raise
        return self._conclude(supervisor)

    def receive(self, number: int, from_terminal: bool) -> None:
        """Hand a signal on to the container, once it is there."""
        self._started.wait()
        if number in ENDING and (passage := self._passage) is not None:
            passage.hurry()
        self._running().receive(number, from_terminal)

    def cancel(self, *, at_once: bool = False) -> None:
        """End the container; `wait` then returns its record. `at_once` spares the farewell."""
        self._running().end("cancelled", at_once=at_once)

    def _running(self) -> ContainerSupervisor:
        assert self._supervisor is not None, "it was not started"
        return self._supervisor

    def _reached(self) -> Engine:
        assert self._engine is not None, "it was not prepared"
        return self._engine

    def _tell_leftovers(self, engine: Engine) -> None:
        left = leftovers(engine, self._machine)
        if left:
            names = ", ".join(found.name for found in left[:3]) + (" …" if len(left) > 3 else "")
            how_many = "a container" if len(left) == 1 else f"{len(left)} containers"
            self._warn(f"a jobmeter that was killed left {how_many} ({names}). `jobmeter doctor --clean` removes them.")

    def _make_parent(self) -> Parent | None:
        if not self._measuring.wants("cgroup"):
            return None
        why = self._reached().why_no_parent()
        try:
            if why is None:
                return create_parent(self._machine, self.id)
        except NoData as reason:
            why = str(reason)
        self._measuring.more["cgroup_parent"] = f"none: {why}"
        return None

    def _find_group(self, container: Container, pid: int) -> ContainerGroup | None:
        try:
            return container.group(self._parent, pid, self._machine)
        except NoData as reason:
            self._measuring.why_not["cgroup"] = str(reason)
            return None

    def _nobody_reads(self) -> None:
        self._running().nobody_reads()

    def _look_at(self, sample: Sample) -> None:
        self._keep_limit(sample)
        self._on_sample(sample)

    def _keep_limit(self, sample: Sample) -> None:
        used = None if self._watched_limit is None else memory_now(sample.values)
        if used is not None and self._watched_limit is not None and used > self._watched_limit:
            self._running().end("oom", at_once=True)

    def _look_last(self) -> None:
        """Every process has ended, and the engine is about to remove its cgroup."""
        if self._group is not None:
            self._group.last_look()
        self._measuring.watch.end_levels()
        self._measuring.watch.sample_now()

    def _conclude(self, supervisor: ContainerSupervisor) -> Record:
        try:
            return self._make_record(supervisor)
        finally:  # whatever interrupts us, the container goes
            self._measuring.close()
            supervisor.close()
            self._clean_up()

    def _make_record(self, supervisor: ContainerSupervisor) -> Record:
        if self._passage is not None:
            if supervisor.ended_by is not None:
                self._passage.hurry()
            self._passage.finish(_REST_OF_OUTPUT)
            self._passage = None
        if supervisor.state is None:
            self._warn(f"{self._reached().name} does not tell of the container any more")
        record, self.outcome = self._measuring.conclude(
            Ending(),
            lambda: self._judge(supervisor),
            0,
            wall_seconds=(wall := self._wall_seconds(supervisor)),
            cpu_span=self._cpu_span(supervisor, wall),
            # Without a group of its own it was seen only after its start.
            complete=self._group is not None,
        )
        return record

    def _wall_seconds(self, supervisor: ContainerSupervisor) -> float | None:
        """How long it ran. What it used before the engine noticed its start it cannot have used in no time."""
        seconds, cpu = running_seconds(supervisor.state), self._group.cpu() if self._group else None
        if seconds is None and supervisor.ended_at is not None:
            seconds = supervisor.ended_at - self._measuring.watch.started
        return seconds if seconds is None or cpu is None else max(seconds, cpu.total / cpu_count())

    def _cpu_span(self, supervisor: ContainerSupervisor, wall: float | None) -> CpuSpan:
        """What the mean of its CPU is taken over: from the first look to the end, without what its runtime used.

        Where nothing tells that share, it is little enough only in a run of a second or more.
        """
        most = 100.0 * self._reached().cpus
        if self._first_look is None or supervisor.ended_at is None:
            return CpuSpan(wall if wall is not None and wall >= _LITTLE_START else 0.0, most_percent=most)
        looked_at, used = self._first_look
        return CpuSpan(supervisor.ended_at - looked_at, cpu_before=used, most_percent=most)

    def _judge(self, supervisor: ContainerSupervisor) -> Outcome:
        result = judge_end(supervisor, self._group, self._job.requirement.memory_bytes)
        return judged_by_outputs(result, self._job.outputs, self._measuring)

    def _clean_up(self, patience: float = 0.0) -> None:
        """Remove the container and its cgroup, within `patience` seconds of an engine that went away.

        What it keeps longer is found by its label later.
        """
        if self._passage is not None:
            self._passage.finish(0.0)
            self._passage = None
        if self._container is not None:
            try:
                self._container.remove(patience)
            except JobmeterError as error:
                name = self._container.id[:12]
                self._warn(f"the container {name} stays until `jobmeter doctor --clean` removes it. {error}")
        if self._group is not None:
            self._group.close()
        if self._parent is not None:
            self._parent.group.close()
            self._parent.remove()
        if self._engine is not None:
            self._engine.close()
