"""Runs one task on this machine, with launcher, meter and journal.

Used by the local engine, and by the workers of engines whose tasks run on other machines: there, `on_sample` and the
journal send the figures back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobmeter.engines.contract import Ended, Task
from jobmeter.errors import CommandNotExecutable, CommandNotFound, JobmeterError
from jobmeter.journal.writer import RunJournal
from jobmeter.launch.spawn import LaunchedJob, Streams
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample
from jobmeter.model import Outcome, Status
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.measuring import MeasureOptions, Measuring, ignore
from jobmeter.session.metrics import VARIABLE, MetricFiles
from jobmeter.session.session import Session
from jobmeter.store_access import access_like, open_or_create
from jobmeter.working_directory import near_path, present_directory

if TYPE_CHECKING:
    from jobmeter.record.types import Record
    from jobmeter.session.contract import JobControl


class TaskRun:
    """One task. Call `run` in one thread; `cancel` may be called from any thread, also before `run`."""

    def __init__(
        self,
        task: Task,
        journal: RunJournal | None,
        environment: Mapping[str, str],
        *,
        devices: Sequence[str] = (),
        meter: Meter | None = None,
        warn: Callable[[str], None] = ignore,
        on_sample: Callable[[Sample], None] = ignore,
        before_exec: Callable[[LaunchedJob], None] = ignore,
    ) -> None:
        """The environment of the task is added to `environment`. `devices` are the GPUs reserved for the task."""
        self.task = task
        self._journal = journal
        self._environment = environment
        self._devices = devices
        self._meter = meter or Meter()
        self._warn = warn
        self._on_sample = on_sample
        self._before_exec = before_exec
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._cancelled = self._at_once = False

    def run(self) -> Ended:
        """Run the task to its end. Raises an exception only if not even a failure can be recorded."""
        if self._cancelled:
            return self._never_started(Outcome(Status.CANCELLED))
        try:
            return self._run_to_the_end()
        except JobmeterError as error:
            return self._refused(error)
        except OSError as error:
            return self._refused(JobmeterError(f"{error.filename or self.task.name}: {error.strerror}"))
        except Exception as error:  # noqa: BLE001 - a failure of one job must not affect the others
            return self._refused(JobmeterError(f"{type(error).__name__}: {error}"))

    def cancel(self, *, at_once: bool = False) -> None:
        """End the task, or do not start it; `at_once` skips SIGTERM."""
        with self._lock:
            self._cancelled = True
            self._at_once = self._at_once or at_once
            session = self._session
        if session is not None:
            self._end(session)

    def _end(self, session: Session) -> None:
        try:
            session.stop(at_once=self._at_once)
        except OSError as error:  # no file descriptor is left: the other jobs must still be ended
            self._warn(f"a job could not be ended: {error}")

    def _run_to_the_end(self) -> Ended:
        task = self.task
        descriptors = _open_streams(task)
        try:
            session = self._make_session(Streams(*descriptors))
            session.start()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        with self._lock:
            self._session, cancelled = session, self._cancelled
        if cancelled:
            self._end(session)
        record = session.wait()
        return Ended(task.number, record, _missing_output(record, task.directory))

    def _make_session(self, streams: Streams) -> Session:
        container = self.task.container
        job = self._command(streams) if container is None else self._container(container, streams)
        return Session(
            job,
            measure_options(self.task, self._journal),
            meter=self._meter,
            warn=self._warn,
            on_sample=self._on_sample,
        )

    def _command(self, streams: Streams) -> JobControl:
        task = self.task
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(self._devices)} if self._devices else {}
        job = JobOptions(
            command=task.command,
            directory=task.directory,
            environment={**self._environment, **task.environment, **visible, VARIABLE: _metric_log(task)},
            streams=streams,
            requirement=task.requirement,
            enforce=task.enforce,
            heeds_sigterm=task.heeds_sigterm,
            orphans="end",
            outputs=task.outputs,
            # Ctrl-C is for the runner of the workflow. It then cancels the jobs, and so they count as cancelled.
            own_session=True,
        )
        return LaunchedCommand(job, before_exec=self._before_exec)

    def _container(self, fields: dict[str, Any], streams: Streams) -> JobControl:
        # Imported only if there are containers.
        from jobmeter.launch.container.spec import Gpus, options_from
        from jobmeter.session.container import LaunchedContainer
        from jobmeter.session.container_job import ContainerJob

        task, container = self.task, options_from(fields)
        if self._devices and container.gpus is None:
            container = container._replace(gpus=Gpus(0, tuple(self._devices)))
        job = ContainerJob(
            container, task.command, task.requirement, streams, task.outputs, heeds_sigterm=task.heeds_sigterm
        )
        return LaunchedContainer(job)

    def _refused(self, error: JobmeterError) -> Ended:
        """The end of a job that could not start. It has failed, as it would in a shell; its stderr has the reason."""
        code = error.exit_code if isinstance(error, (CommandNotFound, CommandNotExecutable)) else 125
        try:
            access = access_like(os.path.dirname(self.task.stderr))
            descriptor = open_or_create(self.task.stderr, access, os.O_WRONLY | os.O_APPEND)
            with open(descriptor, "a", encoding="utf-8") as file:
                file.write(f"jobmeter: {error}\n")
        except OSError:
            pass  # the reason is reported with the end of the task, too
        return self._never_started(Outcome(Status.FAILED, code), str(error))

    def _never_started(self, outcome: Outcome, why: str | None = None) -> Ended:
        return Ended(self.task.number, unmeasured_record(self.task, outcome, self._journal, self._meter), why)


def measure_options(task: Task, journal: RunJournal | None) -> MeasureOptions:
    """How a session measures the task."""
    measure = task.measure
    return MeasureOptions(
        name=task.name,
        labels=task.labels,
        workflow=task.workflow,
        interval=measure.interval,
        window=measure.window,
        measurements=measure.measurements,
        keep_windows=measure.keep_windows,
        redact=measure.redact,
        store=None if journal is None else "",  # the journal knows its own path
        journal=journal,
        metric_files=MetricFiles(_metric_log(task), task.metrics),
    )


def _metric_log(task: Task) -> str:
    """The file that `jobmeter metric` writes to in this job, next to its output."""
    return f"{task.stdout}.metrics"


def unmeasured_record(
    task: Task, outcome: Outcome, journal: RunJournal | None = None, meter: Meter | None = None
) -> Record:
    """The record of a task of which only the outcome is known. It is written to the journal, too."""
    measuring = Measuring(measure_options(task, journal), meter=meter)
    return measuring.record_unstarted(task.command, task.directory or present_directory(), task.requirement, outcome)


def _missing_output(record: Record, directory: str | None) -> str | None:
    """Why a job failed that itself ended well: the output file that it did not make. None if there is no such file."""
    missing = record["provenance"].get("missing_outputs")
    if not missing:
        return None
    return f"it did not make {os.path.relpath(missing[0], directory) if directory else near_path(missing[0])}"


def _open_streams(task: Task) -> list[int]:
    flags = os.O_WRONLY | os.O_TRUNC | os.O_APPEND
    descriptors = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)]
    try:
        for path in (task.stdout, task.stderr):
            descriptors.append(open_or_create(path, access_like(os.path.dirname(path)), flags))
    except OSError:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return descriptors
