"""The measuring part of a run, whether its job was launched here or already ran: sources, watch, journal, record."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from jobmeter.analyse.headline import CpuSpan
from jobmeter.analyse.headline_table import usage
from jobmeter.collectors import Selected, select
from jobmeter.collectors.contract import Ending, Target
from jobmeter.errors import LaunchError, StoreError, UsageError
from jobmeter.journal.writer import JournalWriter, RunJournal
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.kernel.procfs import read_stat
from jobmeter.light_typing import TYPE_CHECKING, Any, NamedTuple
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample, Watch, Window
from jobmeter.model import Outcome, Quality, Requirement, Status
from jobmeter.record import build
from jobmeter.redaction import redaction
from jobmeter.session.sources import Sources

if TYPE_CHECKING:
    from jobmeter.record.types import (
        Described,
        Labels,
        MetricRecord,
        Provenance,
        Record,
        RunIdentity,
        WorkflowPart,
        Writer,
    )
    from jobmeter.session.metrics import MetricFiles


def ignore(*_: Any) -> None:
    """Do nothing: the callback of callers that need no notification."""


class MeasureOptions(NamedTuple):
    """How to measure a run, and what to call it."""

    name: str | None = None
    labels: dict[str, str] = {}
    interval: float = 1.0
    window: float = 10.0  # seconds of the longest; windows of a very long job become longer
    fine_windows: bool = True  # shorter windows at first, so that a job of seconds has a curve
    measurements: list[str] | None = None
    store: str | None = None  # None: no journal is written
    per_process: bool = False
    keep_windows: bool = True  # else the journal has the header and the record alone
    journal: RunJournal | None = None  # a journal shared with other runs, in place of a file for this run
    workflow: WorkflowPart | None = None  # which job of which workflow it is
    whole_process: bool = False  # this process serves this run alone: all its CPU time is the meter's
    from_file: bool = False  # `measurements` are from a configuration file, which never stops a job
    redact: list[str] | None = None  # what to hide in command lines; None: the default patterns
    run_id: str | None = None  # None: a new one
    collectors: tuple[str, ...] = ()  # the default collectors of this kind of job; empty: the usual ones
    metric_files: MetricFiles | None = None  # where the job reports metrics of its own


USUAL = MeasureOptions()


class OpenJob(NamedTuple):
    """A job that was started or found, and is to be measured."""

    target: Target
    command: list[str]
    directory: str
    requirement: Requirement = Requirement()
    name: str | None = None  # used if the options have none; None: the name of the command
    started: float | None = None  # by the monotonic clock; None: now
    on_levels: Callable[[Sample], None] = ignore  # called with every sample and peek, to enforce a limit


class JobEnd(NamedTuple):
    """What is known of a job that has ended, or is measured no longer."""

    ending: Ending = Ending()
    left_running: int = 0  # processes that still run
    wall_seconds: float | None = None  # None: it ended now
    cpu_span: CpuSpan | None = None  # what the mean CPU is taken over; None: the whole run
    complete: bool = True  # else something was not measured, and the figures are "at least"
    labels: Labels = {}  # labels that are known only at the end


class Measuring:
    """Sources, watch and journal of one run. No failure here makes the job fail."""

    def __init__(
        self,
        options: MeasureOptions,
        *,
        meter: Meter | None = None,
        machine: Machine = THIS_MACHINE,
        warn: Callable[[str], None] = ignore,
        on_sample: Callable[[Sample], None] = ignore,
        on_window: Callable[[Window], None] = ignore,
    ) -> None:
        """Raises UsageError, before anything is started, if an option is not valid."""
        for field in ("interval", "window"):
            if not getattr(options, field) > 0:
                raise UsageError(f"--{field}: {getattr(options, field)} is not above 0")
        self.redaction = redaction(None if options.redact is None else tuple(options.redact))
        self.id = options.run_id or build.new_run_id()
        self.machine = machine
        self.warn = warn
        self.sources = Sources(_select(options, machine, warn), machine)
        self.provenance: Provenance = {}  # further entries of the record's provenance
        self.enforced: list[str] = []  # the limits that the kernel enforces: cpus, memory
        self.uncertain: tuple[str, ...] = ()  # prefixes of keys whose sources may have missed something
        self.journal: JournalWriter | None = None
        self._metrics_before = None if options.metric_files is None else options.metric_files.state()
        self._watch: Watch | None = None
        self._options = options
        self._meter = meter or Meter()
        self._on_sample = on_sample
        self._on_window = on_window

    @property
    def watch(self) -> Watch:
        assert self._watch is not None, "the measuring has not begun"
        return self._watch

    def begin(self, job: OpenJob) -> None:
        """Open everything. Raises UsageError if a key that was requested by name cannot be measured for this job."""
        command = self.redaction.words(job.command)
        self._measurements = self.sources.open(job.target._replace(redaction=self.redaction))
        self._began = time.time() - (0.0 if job.started is None else time.monotonic() - job.started)
        self._identity = build.identity(
            self.id,
            command=command,
            name=self._options.name or job.name or os.path.basename(command[0]),
            directory=job.directory,
            labels=self._options.labels,
            requirement=job.requirement,
            started=self._began,
            host=build.this_host(self.machine),
            user=build.this_user(),
            workflow=self._options.workflow,
            enforced=self.enforced,
        )
        self.journal = self._open_journal(job.target)
        self._on_levels = job.on_levels
        self._watch = Watch(
            self.sources.opened,
            self._measurements,
            interval=self._options.interval,
            window=self._options.window,
            fine=self._options.fine_windows and self._options.keep_windows and self.journal is not None,
            on_window=self._write_window,
            on_sample=self._pass_sample,
            on_peek=job.on_levels,
            per_process=self._options.per_process,
        )
        if job.started is not None:
            self._watch.started = job.started

    def start_sampling(self) -> None:
        """Sample the job from now on."""
        if not self._measurements:
            return
        try:
            self._meter.add(self.watch)
        except RuntimeError as error:
            raise LaunchError(f"no thread for measuring the job: {error}") from None

    def sync(self) -> None:
        """Sync the header of the journal, so that it survives a crash of the machine."""
        if self.journal is not None:
            self.journal.sync()

    def _open_journal(self, target: Target) -> JournalWriter | None:
        if self._options.store is None:
            return None
        try:
            journal = JournalWriter(self._options.store, self.id, self._options.journal)
        except StoreError as error:
            self.warn(f"this run is not stored: {error}. Name another directory with --store.")
            return None
        writer: Writer = {"pid": os.getpid(), "root": target.root, "job": target.main}
        if target.group is not None:
            writer["group"] = target.group.path
        try:
            # Pids are reused: with start times, a reader can check later whether writer and job still run.
            writer["start"] = read_stat(self.machine, os.getpid()).start
            writer["root_start"] = read_stat(self.machine, target.root).start
            writer["job_start"] = read_stat(self.machine, target.main).start
        except (OSError, ValueError):
            pass  # no /proc here
        journal.header({**self._identity, "writer": writer}, self._measurements)
        return journal

    def _pass_sample(self, sample: Sample) -> None:
        self._on_levels(sample)
        self._on_sample(sample)

    def _write_window(self, window: Window) -> None:
        if self.journal is not None and self._options.keep_windows:
            processes = [use.entry() for use in window.processes]
            self.journal.window(window.seconds, window.samples, window.cells, processes)
        self._on_window(window)

    def finish(self, end: JobEnd) -> None:
        """Take the last readings: the job has ended, or is measured no longer."""
        wall = end.wall_seconds
        self._ended = time.time() if wall is None else self._began + wall
        self._wall_seconds = time.monotonic() - self.watch.started if wall is None else wall
        self._meter.remove(self.watch)
        self.watch.finish(end.ending)

    def record(self, end: JobEnd, outcome: Outcome) -> Record:
        """The run record, which is also written to the journal. Called after `finish`."""
        try:
            record = self._make_record(end, outcome, self._wall_seconds, self._ended)
        except Exception as error:  # noqa: BLE001 - the job ran: how it ended is recorded, whatever fails here
            record = self._without_figures(end, outcome, error)
        if self.journal is not None:
            self.journal.record(record)
            if self.journal.failed is not None:
                self.warn(f"the journal is incomplete: {self.journal.failed}")
        return record

    def _metrics(self) -> Mapping[str, MetricRecord]:
        """The metrics that the job has reported so far."""
        if self._options.metric_files is None:
            return {}
        from jobmeter.session.metrics import read_metrics  # late: most jobs have none

        return read_metrics(self._options.metric_files, self._began, time.time(), self._metrics_before)

    def record_so_far(self) -> Record:
        """The record of a job that goes on: figures until now, and no end."""
        wall_seconds = time.monotonic() - self.watch.started
        return self._make_record(JobEnd(complete=False), Outcome(Status.RUNNING), wall_seconds, None)

    def _make_record(self, end: JobEnd, outcome: Outcome, wall_seconds: float, ended: float | None) -> Record:
        # Orphans of a job are lost on a system without subreapers, which has no /proc, and where /proc belongs to
        # another pid namespace.
        complete = end.complete and end.left_running == 0 and self.machine.shows_own_pids()
        summary, described = self.watch.summary(), self._as_measured()
        return build.complete(
            relabelled(self._identity, end.labels),
            outcome,
            usage=usage(summary, described, wall_seconds, complete=complete, cpu_span=end.cpu_span),
            metrics=self._metrics(),
            measurements=summary,
            processes=[use.entry() for use in self.watch.processes()],
            threads=self.watch.threads(),
            peaks=self.watch.peaks(),
            devices=self.watch.devices(),
            provenance=self._make_provenance(end),
            wall_seconds=wall_seconds,
            ended=ended,
        )

    def _make_provenance(self, end: JobEnd) -> Provenance:
        provenance: Provenance = {
            "selected": list(self._measurements),
            "collectors": self.sources.availability(self.watch.failures),
            "samples": self.watch.samples,
            "interval_seconds": self._options.interval,
            "interval_reached_seconds": round(self.watch.reached_interval(), 4),
            "meter_cpu_seconds": round(
                time.process_time() if self._options.whole_process else self._meter.cpu_seconds, 4
            ),
        }
        provenance.update(self.provenance)
        if end.left_running:
            provenance["left_running"] = end.left_running
        return provenance

    def _without_figures(self, end: JobEnd, outcome: Outcome, error: Exception) -> Record:
        """The record of how the job ended, and why it has no figures."""
        why = self.redaction.text(f"{type(error).__name__}: {error}")
        self.warn(f"this run has no figures, because of an internal error of jobmeter: {why}")
        provenance: Provenance = {"collectors": {}, "samples": self.watch.samples, "failed": why}
        provenance.update(self.provenance)
        if end.left_running:
            provenance["left_running"] = end.left_running
        return build.complete(
            relabelled(self._identity, end.labels),
            outcome,
            usage={},
            measurements={},
            processes=[],
            provenance=provenance,
            wall_seconds=self._wall_seconds,
            ended=self._ended,
        )

    def _as_measured(self) -> Described:
        """The descriptions, with the quality that was reached in this run."""
        described = {key: m.described() for key, m in self._measurements.items()}
        for key, quality in self.watch.qualities().items():
            if key in described:
                described[key]["quality"] = quality.value
        incomplete = self.watch.incomplete()
        for key, description in described.items():
            if key in incomplete or key.startswith(self.uncertain):
                description["quality"] = Quality.AT_LEAST.value
        return described

    def record_unstarted(
        self, command: list[str], directory: str, requirement: Requirement, outcome: Outcome
    ) -> Record:
        """The record of a job that was never started: its outcome, and no figures."""
        self.sources = Sources([], self.machine)
        target = Target(root=os.getpid(), main=os.getpid(), machine=self.machine)
        self.begin(OpenJob(target, command, directory, requirement))
        self.finish(JobEnd())
        record = self.record(JobEnd(), outcome)
        self.close()
        return record

    def close(self, *, discard: bool = False) -> None:
        """Release everything, also after a failed start. With `discard`, remove the journal: there was no run."""
        if self._watch is None:
            self.sources.close()
        else:
            self._meter.remove(self._watch)
            self._watch.close()
        for name in self.sources.opened:
            if faults := self.sources.faults(name):
                self.warn(f"plug-in {name}: {'; '.join(faults)}")
        self.sources.opened = {}
        if self.journal is not None:
            if discard:
                self.journal.discard()
            else:
                self.journal.close()


def relabelled(identity: RunIdentity, labels: Labels) -> RunIdentity:
    """The identity with further labels."""
    return {**identity, "labels": {**identity["labels"], **labels}} if labels else identity


def _select(options: MeasureOptions, machine: Machine, warn: Callable[[str], None]) -> list[Selected]:
    """What to measure. Raises UsageError for an unknown key; if a configuration file has it, selects the default."""
    if not options.from_file:
        return select(options.measurements, machine, warn, options.collectors)
    try:
        selected = select(options.measurements, machine, warn)
    except UsageError as error:
        warn(f"{error}; the default is measured")
        return select(None, machine, warn)
    # What cannot be measured here is absent, and the record says why.
    return [choice._replace(named=frozenset()) for choice in selected]


def shared_header(measurements: list[str] | None, machine: Machine = THIS_MACHINE) -> dict[str, Any]:
    """The common part of the headers of all runs that this user measures here with the same `measurements`."""
    described = {m.key: m.described() for choice in select(measurements, machine) for m in choice.measurements()}
    return {"host": build.this_host(machine), "user": build.this_user(), "measurements": described}
