"""A run of a container that already runs: measured from now until it ends, or one stops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobmeter.collectors.container import with_container
from jobmeter.collectors.contract import Ending, Target
from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.container import ContainerGroup
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.launch.container.info import kept_limits, limits, running_container
from jobmeter.launch.container.instance import Container
from jobmeter.launch.container.runtime import open_engine
from jobmeter.launch.container.supervisor import ContainerSupervisor
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample
from jobmeter.model import Outcome
from jobmeter.session.container_end import judge_end
from jobmeter.session.measuring import USUAL, MeasureOptions, Measuring, ignore

if TYPE_CHECKING:
    from jobmeter.record.types import Record


class ContainerAttachment:
    """Measures a container, which is not touched. Counters begin at `start`; peaks are of its whole life."""

    def __init__(
        self,
        container: str,
        options: MeasureOptions = USUAL,
        *,
        engine: str = "auto",
        meter: Meter | None = None,
        machine: Machine = THIS_MACHINE,
        warn: Callable[[str], None] = ignore,
        on_sample: Callable[[Sample], None] = ignore,
    ) -> None:
        """LaunchError when the engine does not answer; UsageError when it has no such container that runs."""
        self.outcome: Outcome
        self._supervisor: ContainerSupervisor | None = None
        self._lock = threading.Lock()
        self._stop_asked = False
        self._name = container
        self._machine = machine
        options = options._replace(measurements=with_container(options.measurements), name=options.name or container)
        self._measuring = Measuring(options, meter=meter, machine=machine, warn=warn, on_sample=on_sample)
        self._engine = open_engine(engine)
        try:
            self._told = running_container(self._engine, container)
        except BaseException:
            self._engine.close()
            raise

    @property
    def id(self) -> str:
        return self._measuring.id

    @property
    def journal_path(self) -> str | None:
        return self._measuring.journal.path if self._measuring.journal is not None else None

    def start(self) -> None:
        """Begin to measure. UsageError when a key that was requested by name cannot be measured of it."""
        config, measuring = self._told["Config"], self._measuring
        network = (self._told.get("HostConfig") or {}).get("NetworkMode")
        container = Container(self._engine, str(self._told["Id"]), network=network, already_ran=True)
        state = self._engine.state(container.id)
        pid = container.visible_pid(state, self._machine)
        self._group = self._find_group(container, pid)
        command = [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])]
        measuring.more["container"] = {
            "image": config.get("Image", ""),
            "engine": self._engine.name.lower(),
            "engine_version": self._engine.version,
            "id": container.id,
        }
        target = Target(
            root=pid, main=pid, root_is_job=True, group=self._group, machine=self._machine, container=container
        )
        measuring.enforced = kept_limits(limits(self._told))
        try:
            measuring.begin(target, command or [self._name], config.get("WorkingDir") or "", limits(self._told))
        except BaseException:
            if self._group is not None:
                self._group.close()
            self._engine.close()
            raise
        supervisor = ContainerSupervisor(
            self._engine, container.id, self._machine, pid=pid, runtime=None, at_exit=self._look_last
        )
        with self._lock:
            self._supervisor = supervisor
            if self._stop_asked:
                supervisor.abandon()
        measuring.go()
        measuring.sync()

    def wait(self) -> Record:
        """Wait for the end of the container, or for `stop`, and return the run record."""
        supervisor = self._supervisor
        assert supervisor is not None, "it was not started"
        supervisor.wait()
        left = self._left_running() if supervisor.abandoned else 0
        record, self.outcome = self._measuring.conclude(Ending(), lambda: self._judge(supervisor), left)
        self._measuring.close()
        supervisor.close()
        if self._group is not None:
            self._group.close()
        self._engine.close()
        return record

    def stop(self) -> None:
        """Measure no longer; the container goes on."""
        with self._lock:
            self._stop_asked = True
            if self._supervisor is not None:
                self._supervisor.abandon()

    def _look_last(self) -> None:
        if self._group is not None:
            self._group.last_look()
        self._measuring.watch.end_levels()
        self._measuring.watch.sample_now()

    def _find_group(self, container: Container, pid: int) -> ContainerGroup | None:
        try:
            return container.group(None, pid, self._machine)
        except NoData as reason:
            self._measuring.why_not["cgroup"] = str(reason)
            return None

    def _left_running(self) -> int:
        return max(len(self._group.processes()) if self._group else 0, 1)

    def _judge(self, supervisor: ContainerSupervisor) -> Outcome:
        if supervisor.abandoned:
            return Outcome("detached")
        return judge_end(supervisor, self._group, limits(self._told).memory_bytes)
