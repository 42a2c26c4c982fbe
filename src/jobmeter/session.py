"""One run: launch + meter + journal. What `jobmeter run`, the Python API and every engine call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from jobmeter.analyse.outcome import outcome
from jobmeter.collectors import Selected, select
from jobmeter.collectors.contract import Ending, Reaped, Source, Target
from jobmeter.errors import JobmeterError, NoData, StoreError, UsageError
from jobmeter.journal.writer import JournalWriter
from jobmeter.kernel.cgroup import Group, create_group, enclosing_oom_kills
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.launch.spawn import Streams, spawn
from jobmeter.launch.supervisor import Supervisor
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample, Watch, Window
from jobmeter.model import Measurement, Outcome, Record, Requirement
from jobmeter.report import record as records

ORPHANS = ("leave", "wait", "end")


class RunOptions(NamedTuple):
    """A command to run and how to measure it."""

    command: list[str]
    name: str | None = None
    labels: dict[str, str] = {}
    directory: str | None = None
    environment: dict[str, str] | None = None
    streams: Streams | None = None
    interval: float = 1.0
    window: float = 10.0
    measurements: list[str] | None = None
    requirement: Requirement = Requirement()
    enforce: bool = False
    orphans: str = "leave"
    store: str | None = None  # None: no journal is kept
    per_process: bool = False


def _ignore(text: str) -> None:
    return


class Session:
    """`start` it, then `wait` for its record. Nothing it does after `start` can fail the job."""

    def __init__(
        self,
        options: RunOptions,
        *,
        meter: Meter | None = None,
        machine: Machine = THIS_MACHINE,
        warn: Callable[[str], None] = _ignore,
        on_sample: Callable[[Sample], None] | None = None,
    ) -> None:
        """UsageError, before anything is started, for options that mean nothing."""
        if options.orphans not in ORPHANS:
            raise UsageError(f"--orphans: {options.orphans!r} is none of {', '.join(ORPHANS)}")
        for field in ("interval", "window"):
            if not getattr(options, field) > 0:
                raise UsageError(f"--{field}: {getattr(options, field)} is not above 0")
        self.id = records.new_run_id()
        self.options = options
        self._machine = machine
        self._meter = meter or Meter()
        self._warn = warn
        self._listener = on_sample
        self._selected = select(options.measurements, machine)
        self._why_not: dict[str, str] = {}
        self._group: Group | None = None
        self._journal: JournalWriter | None = None

    def start(self) -> None:
        """Start the job. JobmeterError when it cannot be; then nothing is left of it."""
        self._group = self._make_group()
        try:
            self._launched = spawn(
                self.options.command,
                environment=dict(os.environ) if self.options.environment is None else self.options.environment,
                directory=self.options.directory,
                streams=self.options.streams,
            )
        except JobmeterError:
            self._remove_group()
            raise
        self._oom_kills_before = enclosing_oom_kills(self._machine)
        self._enter_group()
        sources = self._open_sources()
        self._measurements = _by_key(self._selected, sources)
        self._started = time.time()
        self._begun = self._identity()
        self._journal = self._open_journal()
        self._watch = Watch(
            sources,
            self._measurements,
            interval=self.options.interval,
            window=self.options.window,
            on_window=self._note_window,
            on_sample=self._look_at_sample,
            per_process=self.options.per_process,
        )
        requirement, enforce = self.options.requirement, self.options.enforce
        self._supervisor = Supervisor(
            self._launched,
            self._machine,
            orphans=self.options.orphans,
            runtime=requirement.runtime_seconds if enforce else None,
            before_reaping=self._watch.sample_now,
        )
        self._launched.open_gate()
        self._meter.add(self._watch)
        if self._journal is not None:
            self._journal.sync()

    def wait(self) -> Record:
        """Wait for the end of the job and return the run record."""
        try:
            self._supervisor.wait()
        except JobmeterError:
            # It never became the program it was to be: there is nothing to record.
            self._close(discard=True)
            raise
        except BaseException:
            self._supervisor.end("cancelled")
            self._supervisor.wait()
            self._conclude()
            raise
        return self._conclude()

    def receive(self, number: int, from_terminal: bool) -> None:
        """Hand a signal on to the job."""
        self._supervisor.receive(number, from_terminal)

    @property
    def outcome(self) -> Outcome:
        """How the job ended; for use after `wait`."""
        return self._outcome

    @property
    def journal_path(self) -> str | None:
        return self._journal.path if self._journal is not None else None

    def _make_group(self) -> Group | None:
        wants_group = any(choice.collector.name == "cgroup" for choice in self._selected)
        if not wants_group and not self.options.enforce:
            return None
        try:
            return create_group(self._machine, self.id)
        except NoData as reason:
            self._why_not["cgroup"] = str(reason)
            return None

    def _enter_group(self) -> None:
        if self._group is None:
            return
        try:
            self._group.add(self._launched.main)
        except OSError as error:
            self._why_not["cgroup"] = f"{self._group.path}: {error.strerror}"
            self._remove_group()
            return
        if not self.options.enforce:
            return
        requirement = self.options.requirement
        try:
            if requirement.memory_bytes is not None:
                self._group.limit_memory(requirement.memory_bytes)
            if requirement.cpus is not None:
                self._group.limit_cpus(requirement.cpus)
        except (OSError, NoData) as error:
            self._warn(f"a limit is kept by the meter alone: {error}")

    def _open_sources(self) -> dict[str, Source]:
        target = Target(
            root=self._launched.shepherd,
            main=self._launched.main,
            group=self._group,
            machine=self._machine,
            command=" ".join(self.options.command),
        )
        sources = {}
        for choice in self._selected:
            name = choice.collector.name
            try:
                sources[name] = choice.collector.open(target, choice.wanted)
            except (NoData, OSError) as reason:
                self._why_not.setdefault(name, str(reason))
        return sources

    def _identity(self) -> Record:
        options = self.options
        return records.identity(
            self.id,
            command=options.command,
            name=options.name or os.path.basename(options.command[0]),
            directory=options.directory or os.getcwd(),
            labels=options.labels,
            requirement=options.requirement,
            started=self._started,
            machine=self._machine,
        )

    def _open_journal(self) -> JournalWriter | None:
        if self.options.store is None:
            return None
        try:
            journal = JournalWriter(self.options.store, self.id)
        except StoreError as error:
            self._warn(f"this run is not kept: {error}. Name another place with --store.")
            return None
        writer = {"pid": os.getpid(), "shepherd": self._launched.shepherd, "job": self._launched.main}
        journal.header({**self._begun, "writer": writer}, self._measurements)
        return journal

    def _note_window(self, window: Window) -> None:
        if self._journal is not None:
            processes = [records.process_entry(use) for use in window.processes]
            self._journal.window(window.seconds, window.samples, window.cells, processes)

    def _look_at_sample(self, sample: Sample) -> None:
        if self.options.enforce and self._over_memory(sample):
            self._supervisor.end("oom", at_once=True)
        if self._listener is not None:
            self._listener(sample)

    def _over_memory(self, sample: Sample) -> bool:
        limit = self.options.requirement.memory_bytes
        if limit is None:
            return False
        if self._group is not None and self._group.oom_kills() is not None:
            return bool(self._group.oom_kills())
        used = sample.values.get("proc_pss_total")
        if used is None and sample.values.get("proc_processes") == 1:
            used = sample.values.get("proc_rss_total")
        return isinstance(used, (int, float)) and used > limit

    def _conclude(self) -> Record:
        ended, wall = time.time(), time.monotonic() - self._watch.started
        self._meter.remove(self._watch)
        reaped = [
            Reaped(m.pid, m.user_us / 1e6, m.system_us / 1e6, m.maxrss_kib * 1024) for m in self._supervisor.reaped
        ]
        self._watch.finish(Ending(tuple(reaped), self._launched.launcher_bytes()))
        self._outcome = outcome(
            self._supervisor.wait_status, ended_by=self._supervisor.ended_by, oom_kills=self._oom_kills()
        )
        record = records.complete(
            self._begun,
            self._outcome,
            summary=self._watch.summary(),
            processes=self._watch.processes(),
            measurements=self._measurements,
            wall_seconds=wall,
            ended=ended,
            left_running=self._supervisor.left_running,
            provenance=self._provenance(),
        )
        if self._journal is not None:
            self._journal.record(record)
            if self._journal.failed is not None:
                self._warn(f"the journal is incomplete: {self._journal.failed}")
        self._close()
        return record

    def _oom_kills(self) -> int:
        """The kernel's count for this job; around it, when it has no cgroup of its own."""
        if self._group is not None and (kills := self._group.oom_kills()) is not None:
            return kills
        status = self._supervisor.wait_status
        killed = status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9
        after = enclosing_oom_kills(self._machine) if killed else None
        if after is None or self._oom_kills_before is None or self._supervisor.ended_by is not None:
            return 0
        return after - self._oom_kills_before

    def _provenance(self) -> dict[str, Any]:
        collectors: dict[str, dict[str, Any]] = {}
        for choice in self._selected:
            name = choice.collector.name
            if name in self._why_not:
                collectors[name] = {"available": False, "why": self._why_not[name]}
            elif name in self._watch.failures:
                collectors[name] = {"available": True, "failed": self._watch.failures[name]}
            else:
                collectors[name] = {"available": True}
        return {
            "collectors": collectors,
            "samples": self._watch.samples,
            "interval_seconds": self.options.interval,
            "interval_reached_seconds": round(self._watch.reached_interval(), 4),
            "meter_cpu_seconds": round(self._meter.cpu_seconds, 4),
        }

    def _close(self, *, discard: bool = False) -> None:
        self._meter.remove(self._watch)
        self._watch.close()
        self._supervisor.close()
        self._launched.let_go()
        self._remove_group()
        if self._journal is not None:
            if discard:
                self._journal.discard()
            else:
                self._journal.close()

    def _remove_group(self) -> None:
        if self._group is not None:
            self._group.remove()
            self._group = None


def _by_key(selected: list[Selected], sources: dict[str, Source]) -> dict[str, Measurement]:
    """The measurements that are wanted and have an open source."""
    return {m.key: m for choice in selected if choice.collector.name in sources for m in choice.measurements()}
