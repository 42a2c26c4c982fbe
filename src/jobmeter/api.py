"""The Python API: run a command, or watch a process, and get what it used.

import jobmeter

run = jobmeter.run(["python", "train.py"], memory="4g")
print(run.cpu_seconds, run.memory_peak_bytes, run.status)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobmeter.errors import OptionRefused
from jobmeter.meter.meter import Meter
from jobmeter.model import Requirement, Status
from jobmeter.record.read import figure_value
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.measuring import MeasureOptions
from jobmeter.session.process import RunningProcess
from jobmeter.session.session import Session
from jobmeter.settings import resolve
from jobmeter.units import parse_bytes, parse_seconds

if TYPE_CHECKING:
    from jobmeter.launch.container.spec import ContainerOptions
    from jobmeter.record.types import Record
    from jobmeter.session.contract import JobControl
    from jobmeter.workflow.run import Result as WorkflowResult

_METER = Meter()
"""One sampling thread for all jobs of this process."""


class Run:
    """A run that is over: its record, and the most used figures."""

    def __init__(self, record: Record) -> None:
        self.record = record

    @property
    def id(self) -> str:
        return self.record["id"]

    @property
    def status(self) -> Status:
        """How it ended; a text, too: `run.status == "completed"`."""
        return Status(self.record["outcome"]["status"])

    @property
    def exit_code(self) -> int | None:
        """The job's exit code; None when a signal ended it."""
        return self.record["outcome"]["exit_code"]

    @property
    def wall_seconds(self) -> float:
        return self.record["wall_seconds"]

    @property
    def cpu_seconds(self) -> float | None:
        return self.figure("cpu_seconds")

    @property
    def memory_peak_bytes(self) -> float | None:
        return self.figure("memory_peak_bytes")

    def figure(self, name: str) -> float | None:
        """A headline figure of the record's `usage`; None when it was not measured."""
        return figure_value(self.record, name)

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.record['name']} {self.status}>"


class RunningJob:
    """A job that was started; `wait` for its Run, or `cancel` it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._run: Run | None = None

    @property
    def id(self) -> str:
        return self._session.id

    def wait(self) -> Run:
        if self._run is None:
            self._run = Run(self._session.wait())
        return self._run

    def cancel(self) -> None:
        """End the job with everything it started; `wait` then returns its Run."""
        self._session.stop()


def start(
    command: Sequence[str],
    *,
    name: str | None = None,
    labels: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    cpus: float | None = None,
    memory: int | str | None = None,
    runtime: float | str | None = None,
    enforce: bool = False,
    orphans: str | None = None,
    interval: float | None = None,
    window: float | None = None,
    measurements: Sequence[str] | None = None,
    store: str | None = None,
    keep: bool = True,
    container: str | ContainerOptions | None = None,
) -> RunningJob:
    """Start a command and return at once. Options are those of `jobmeter run`; `keep=False` stores no journal.

    `container` is an image to run it in, or ContainerOptions with more; `cwd` and `env` are then the container's.
    OptionRefused for an option that has no effect on this job, as `orphans` in a container.
    """
    requirement = Requirement(
        cpus,
        parse_bytes(memory) if isinstance(memory, str) else memory,
        parse_seconds(runtime) if isinstance(runtime, str) else runtime,
    )
    if enforce and not requirement.requested():
        raise OptionRefused("enforce: has no effect without cpus, memory or runtime")
    options = _measure_options(name, labels, interval, window, measurements, store, keep)
    words, directory = [os.fspath(word) for word in command], None if cwd is None else os.fspath(cwd)
    job: JobControl
    if container is not None:
        if orphans is not None:
            raise OptionRefused("orphans: has no effect in a container: its processes end with its first")
        job = _in_container(container, words, directory, env or {}, requirement)
    else:
        environment = None if env is None else dict(env)
        job = LaunchedCommand(JobOptions(words, directory, environment, None, requirement, enforce, orphans or "leave"))
    session = Session(job, options, meter=_METER)
    session.start()
    return RunningJob(session)


def run(command: Sequence[str], **options: Any) -> Run:
    """Run a command to its end and return what it used. Takes the options of `start`.

    CommandNotFound or CommandNotExecutable when there is nothing to run; a job that fails is no error.
    """
    return start(command, **options).wait()


def attach(
    pid: int,
    *,
    name: str | None = None,
    labels: Mapping[str, str] | None = None,
    interval: float | None = None,
    window: float | None = None,
    measurements: Sequence[str] | None = None,
    store: str | None = None,
    keep: bool = True,
) -> Run:
    """Measure a running process and its descendants from now until all of them end."""
    options = _measure_options(name, labels, interval, window, measurements, store, keep)
    session = Session(RunningProcess(pid), options, meter=_METER)
    session.start()
    return Run(session.wait())


def run_workflow(
    spec: str | os.PathLike[str],
    *,
    cpus: float | None = None,
    memory: int | str | None = None,
    gpus: int | None = None,
    enforce: bool = False,
    monitoring: bool = True,
    store: str | None = None,
    engine: str = "local",
    engine_options: Mapping[str, str] | None = None,
) -> WorkflowResult:
    """Run the jobs of a spec to their end. Options are those of `jobmeter workflow run`.

    UsageError when the spec is wrong or a job can never fit; jobs that fail are no error. What the command would
    print as a warning is a Python warning.
    """
    from jobmeter.workflow.service import WorkflowOptions, claim, execute, prepare_run

    options = WorkflowOptions(
        store=resolve("store", store),
        engine=engine,
        engine_options=engine_options or {},
        cpus=cpus,
        memory_bytes=parse_bytes(memory) if isinstance(memory, str) else memory,
        gpus=gpus,
        enforce=enforce,
        monitoring=monitoring,
    )
    return execute(claim(prepare_run(os.fspath(spec), options, _warn)), warn=_warn)


def _warn(message: str) -> None:
    import warnings

    warnings.warn(message, stacklevel=2)


def _in_container(
    container: str | ContainerOptions,
    command: list[str],
    cwd: str | None,
    env: Mapping[str, str],
    requirement: Requirement,
) -> JobControl:
    from jobmeter.launch.container.spec import ContainerOptions
    from jobmeter.session.container import LaunchedContainer
    from jobmeter.session.container_job import ContainerJob

    options = ContainerOptions(container) if isinstance(container, str) else container
    directory = options.directory if cwd is None else cwd
    options = options._replace(directory=directory, environment={**options.environment, **env})
    return LaunchedContainer(ContainerJob(options, command, requirement))


class ContainerMeter:
    """Measures a container that already runs, until it ends or `stop`.

    with jobmeter.ContainerMeter("web") as meter:
        ...
    print(meter.run.cpu_seconds)
    """

    def __init__(
        self,
        container: str,
        *,
        engine: str = "auto",
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        interval: float | None = None,
        window: float | None = None,
        measurements: Sequence[str] | None = None,
        store: str | None = None,
        keep: bool = True,
    ) -> None:
        """UsageError when no such container runs."""
        from jobmeter.session.running_container import RunningContainer

        self.run: Run
        options = _measure_options(name, labels, interval, window, measurements, store, keep)
        self._session = Session(RunningContainer(container, engine=engine), options, meter=_METER)
        self._session.prepare()

    def start(self) -> None:
        self._session.start()

    def stop(self) -> None:
        """Stop measuring; the container keeps running."""
        self._session.stop()

    def wait(self) -> Run:
        """Wait for the end of the container, or for `stop`, and return what it used since `start`."""
        self.run = Run(self._session.wait())
        return self.run

    def __enter__(self) -> ContainerMeter:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.wait()


def _measure_options(
    name: str | None,
    labels: Mapping[str, str] | None,
    interval: float | None,
    window: float | None,
    measurements: Sequence[str] | None,
    store: str | None,
    keep: bool,
) -> MeasureOptions:
    for option, value in (("store", store), ("window", window)):
        if not keep and value is not None:
            raise OptionRefused(f"{option}: has no effect with keep=False, which stores no journal")
    return MeasureOptions(
        name=name,
        labels=dict(labels or {}),
        interval=resolve("interval", None if interval is None else str(interval)),
        window=resolve("window", None if window is None else str(window)),
        measurements=resolve("measurements", None if measurements is None else ",".join(measurements)),
        store=resolve("store", store) if keep else None,
    )
