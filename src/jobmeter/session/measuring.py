"""The measuring part of a run, whether its job was launched here or already ran."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from jobmeter.analyse.headline import CpuSpan
from jobmeter.collectors import Selected, availability, select, unavailable
from jobmeter.collectors.contract import Ending, Source, Target
from jobmeter.errors import LaunchError, StoreError, UsageError
from jobmeter.journal.writer import JournalWriter, RunJournal
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.kernel.procfs import read_stat
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample, Watch, Window
from jobmeter.model import Measurement, Outcome, Quality, Record, Requirement
from jobmeter.report import record as records


def ignore(*_: Any) -> None:
    """For those who do not want to be told."""


class MeasureOptions(NamedTuple):
    """How to measure, and what to call it."""

    name: str | None = None
    labels: dict[str, str] = {}
    interval: float = 1.0
    window: float = 10.0
    measurements: list[str] | None = None
    store: str | None = None  # None: no journal is kept
    per_process: bool = False
    keep_windows: bool = True  # else its header and its record alone
    journal: RunJournal | None = None  # a journal shared with others, in place of one of its own
    workflow: Record | None = None  # which job of which workflow it is


USUAL = MeasureOptions()


class Measuring:
    """Sources, watch and journal of one run. Nothing that fails here fails the job."""

    def __init__(
        self,
        options: MeasureOptions,
        *,
        meter: Meter | None = None,
        machine: Machine = THIS_MACHINE,
        warn: Callable[[str], None] = ignore,
        on_sample: Callable[[Sample], None] = ignore,
        on_peek: Callable[[Sample], None] = ignore,
    ) -> None:
        """UsageError, before anything is started, for options that mean nothing."""
        for field in ("interval", "window"):
            if not getattr(options, field) > 0:
                raise UsageError(f"--{field}: {getattr(options, field)} is not above 0")
        self.id = records.new_run_id()
        self.selected = select(options.measurements, machine, warn)
        self.machine = machine
        self.why_not: dict[str, str] = {}
        self.more: dict[str, Any] = {}  # what else the record's provenance shall tell
        self.enforced: list[str] = []  # what the kernel keeps the job to: cpus, memory
        self.unsure: tuple[str, ...] = ()  # how keys begin whose sources may have missed something
        self.watch: Watch
        self.journal: JournalWriter | None = None
        self._sources: dict[str, Source] = {}
        self._options = options
        self._meter = meter or Meter()
        self._warn = warn
        self._on_sample = on_sample
        self._on_peek = on_peek

    def wants(self, collector: str) -> bool:
        return any(choice.collector.name == collector for choice in self.selected)

    def wants_any(self, keys: tuple[str, ...]) -> bool:
        return any(choice.wanted & set(keys) for choice in self.selected)

    def begin(self, target: Target, command: list[str], directory: str, requirement: Requirement) -> None:
        """Open everything for a job that waits at its gate, or runs.

        UsageError, and nothing is left open, when a key that was requested by name cannot be measured of it.
        """
        sources = self._sources = self._open_sources(target)
        self._refuse_missing(sources)
        self._began = time.time()
        self._measurements = _by_key(self.selected, sources)
        self._begun = records.identity(
            self.id,
            command=command,
            name=self._options.name or os.path.basename(command[0]),
            directory=directory,
            labels=self._options.labels,
            requirement=requirement,
            started=self._began,
            machine=self.machine,
            workflow=self._options.workflow,
            enforced=self.enforced,
        )
        self.journal = self._open_journal(target)
        self.watch = Watch(
            sources,
            self._measurements,
            interval=self._options.interval,
            window=self._options.window,
            on_window=self._note_window,
            on_sample=self._on_sample,
            on_peek=self._on_peek,
            per_process=self._options.per_process,
        )

    def go(self) -> None:
        """The job runs: sample it from now on."""
        if not self._measurements:
            return
        try:
            self._meter.add(self.watch)
        except RuntimeError as error:
            raise LaunchError(f"the job was not started: no thread for measuring it ({error})") from None

    def sync(self) -> None:
        """Have the header of the journal survive a crash of the machine."""
        if self.journal is not None:
            self.journal.sync()

    def check_ahead(self) -> None:
        """UsageError when a key that was requested by name is sure not to be measurable of what is not our child.

        For a container, which runs as soon as it is there: sources are tried on this process. Its cgroup is not known
        before it runs, and its engine is only asked then.
        """
        myself = Target(root=os.getpid(), main=os.getpid(), root_is_job=True, machine=self.machine)
        for choice in self.selected:
            collector = choice.collector
            if not choice.named or collector.name == "cgroup":
                continue
            if collector.name == "container":
                why = availability(collector, self.machine)
                _refuse(choice, dict.fromkeys(choice.named, why) if why is not None else {})
                continue
            try:
                source = collector.open(myself, choice.wanted)
            except Exception as reason:  # noqa: BLE001 - as in `_open_sources`
                _refuse(choice, dict.fromkeys(choice.named, str(reason) or type(reason).__name__))
                continue
            missing = unavailable(collector, self.machine, source)
            source.close()
            _refuse(choice, missing)

    def _refuse_missing(self, sources: dict[str, Source]) -> None:
        try:
            for choice in self.selected:
                name = choice.collector.name
                if not choice.named:
                    continue
                if name in sources:
                    _refuse(choice, unavailable(choice.collector, self.machine, sources[name]))
                else:
                    _refuse(choice, dict.fromkeys(choice.named, self.why_not[name]))
        except BaseException:
            for source in sources.values():
                source.close()
            raise

    def _open_sources(self, target: Target) -> dict[str, Source]:
        sources = {}
        for choice in self.selected:
            collector, name, wanted = choice.collector, choice.collector.name, choice.wanted
            if choice.usual and hasattr(collector, "spare"):
                wanted -= choice.usual & collector.spare(target)
                if not wanted:
                    self.why_not.setdefault(name, "not needed: the job's cgroup counts the same")
                    continue
            try:
                sources[name] = collector.open(target, wanted)
            except Exception as reason:  # noqa: BLE001 - a collector that fails costs its own readings, whoever wrote it
                self.why_not.setdefault(name, str(reason) or type(reason).__name__)
        return sources

    def _open_journal(self, target: Target) -> JournalWriter | None:
        if self._options.store is None:
            return None
        try:
            journal = JournalWriter(self._options.store, self.id, self._options.journal)
        except StoreError as error:
            self._warn(f"this run is not kept: {error}. Name another place with --store.")
            return None
        writer: Record = {"pid": os.getpid(), "root": target.root, "job": target.main}
        if target.group is not None:
            writer["group"] = target.group.path
        try:
            # Pids are reused: with start times, whoever reads this knows later whether writer and job still live.
            writer["start"] = read_stat(self.machine, os.getpid()).start
            writer["root_start"] = read_stat(self.machine, target.root).start
            writer["job_start"] = read_stat(self.machine, target.main).start
        except (OSError, ValueError):
            pass  # no /proc here
        journal.header({**self._begun, "writer": writer}, self._measurements)
        return journal

    def _note_window(self, window: Window) -> None:
        if self.journal is not None and self._options.keep_windows:
            processes = [records.process_entry(use) for use in window.processes]
            self.journal.window(window.seconds, window.samples, window.cells, processes)

    def conclude(
        self,
        ending: Ending,
        judge: Callable[[], Outcome],
        left_running: int,
        *,
        wall_seconds: float | None = None,
        complete: bool = True,
        cpu_span: CpuSpan | None = None,
    ) -> tuple[Record, Outcome]:
        """Take the last readings and make the record; `judge` tells the outcome once they are taken.

        The job took `wall_seconds` if someone knows better than that it ends now. With `complete` false
        something of it was not seen, and the figures are at least what they say. Its mean CPU is of `cpu_span`.
        """
        ended = time.time() if wall_seconds is None else self._began + wall_seconds
        wall = time.monotonic() - self.watch.started if wall_seconds is None else wall_seconds
        self._meter.remove(self.watch)
        self.watch.finish(ending)
        result = judge()
        record = records.complete(
            self._begun,
            result,
            summary=self.watch.summary(),
            processes=self.watch.processes(),
            measurements=self._as_measured(),
            wall_seconds=wall,
            ended=ended,
            left_running=left_running,
            # Where the system has no subreapers, what a job orphans is never seen again; nor is it where
            # /proc shows the processes of others.
            complete_figures=complete and left_running == 0 and self.machine.shows_own_pids(),
            provenance=self._provenance(),
            cpu_span=cpu_span,
        )
        if self.journal is not None:
            self.journal.record(record)
            if self.journal.failed is not None:
                self._warn(f"the journal is incomplete: {self.journal.failed}")
        return record, result

    def _as_measured(self) -> dict[str, Measurement]:
        """The descriptions, with the quality that was reached in this run."""
        incomplete = self.watch.incomplete()
        return {
            key: m._replace(quality=Quality.AT_LEAST) if key in incomplete or key.startswith(self.unsure) else m
            for key, m in self._measurements.items()
        }

    def _provenance(self) -> dict[str, Any]:
        collectors: dict[str, dict[str, Any]] = {}
        for choice in self.selected:
            name = choice.collector.name
            if name in self.why_not:
                collectors[name] = {"available": False, "why": self.why_not[name]}
            elif faults := self._faults_of(name):
                collectors[name] = {"available": True, "failed": "; ".join(faults)}
            elif name in self.watch.failures:
                collectors[name] = {"available": True, "failed": self.watch.failures[name]}
            else:
                collectors[name] = {"available": True}
        return {
            "collectors": collectors,
            "samples": self.watch.samples,
            "interval_seconds": self._options.interval,
            "interval_reached_seconds": round(self.watch.reached_interval(), 4),
            "meter_cpu_seconds": round(self._meter.cpu_seconds, 4),
            **self.more,
        }

    def _faults_of(self, name: str) -> list[str]:
        """What was wrong with the readings of a collector of another package."""
        source: Any = self._sources.get(name)
        faults: list[str] = source.faults() if hasattr(source, "faults") else []
        return faults

    def refuse(self, command: list[str], directory: str, requirement: Requirement, result: Outcome) -> Record:
        """The record of a job that could not even begin: how it ended, and nothing measured."""
        self.selected = []
        nobody = Target(root=os.getpid(), main=os.getpid(), machine=self.machine)
        self.begin(nobody, command, directory, requirement)
        record, _ = self.conclude(Ending(), lambda: result, 0)
        self.close()
        return record

    def close(self, *, discard: bool = False) -> None:
        """Let go of everything; with `discard`, as if the run had never been."""
        self._meter.remove(self.watch)
        self.watch.close()
        for name in self._sources:
            if faults := self._faults_of(name):
                self._warn(f"plug-in {name}: {'; '.join(faults)}")
        self._sources = {}
        if self.journal is not None:
            if discard:
                self.journal.discard()
            else:
                self.journal.close()


def shared_header(measurements: list[str] | None, machine: Machine = THIS_MACHINE) -> Record:
    """What the headers of runs that are measured alike, here and by this user, have in common."""
    described = {m.key: m.described() for choice in select(measurements, machine) for m in choice.measurements()}
    return {**records.surroundings(machine), "measurements": described}


def _refuse(choice: Selected, missing: dict[str, str]) -> None:
    """UsageError for the first key that was requested by name and is missing."""
    for key in sorted(choice.named & missing.keys()):
        raise UsageError(f"--measurements: {key} cannot be measured here: {missing[key]}")


def _by_key(selected: list[Selected], sources: dict[str, Source]) -> dict[str, Measurement]:
    """The measurements that are wanted and have an open source."""
    return {m.key: m for choice in selected if choice.collector.name in sources for m in choice.measurements()}
