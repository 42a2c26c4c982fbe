"""The Python API: run a command, or watch a process, and get what it used.

import jobmeter

run = jobmeter.run(["python", "train.py"], memory="4g")
print(run.cpu_seconds, run.memory_peak_bytes, run.status)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobmeter.api.options import measure_options, requirement_of, warn
from jobmeter.api.results import Run, stored_windows
from jobmeter.errors import OptionRefused
from jobmeter.meter.meter import PROCESS_METER
from jobmeter.meter.watch import Window
from jobmeter.model import Requirement
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.measuring import MeasureOptions
from jobmeter.session.process import RunningProcess
from jobmeter.session.session import Session
from jobmeter.settings import memory_bytes, resolve

if TYPE_CHECKING:
    from jobmeter.launch.container.spec import ContainerOptions
    from jobmeter.session.contract import JobControl
    from jobmeter.workflow.result import Result as WorkflowResult


class _MeasuredJob:
    """A job with its session, and the windows of one that is not stored."""

    def __init__(self, job: JobControl, options: MeasureOptions) -> None:
        self._windows: list[tuple[float, Mapping[str, Any]]] = []
        self._is_stored = options.store is not None
        self._session = Session(job, options, meter=PROCESS_METER, warn=warn, on_window=self._keep_window)
        self._run: Run | None = None
        self._waiting = threading.Lock()

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._session.id

    def wait(self) -> Run:
        """Wait for its end, and return what it used."""
        with self._waiting:
            if self._run is None:
                path = self._session.journal_path
                record = self._session.wait()
                self._run = Run(record, stored_windows(path, self.id) if self._is_stored else self._windows.copy)
            return self._run

    def so_far(self) -> Run:
        """What it used until now; the status is `running`."""
        return self._run or Run(self._session.record_so_far(), self._windows.copy)

    def _keep_window(self, window: Window) -> None:
        if not self._is_stored:
            self._windows.append((window.seconds, window.cells))


class RunningJob(_MeasuredJob):
    """A job that was started; `wait` for its Run, or `cancel` it."""

    def cancel(self) -> None:
        """End the job with everything it started; `wait` then returns its Run."""
        self._session.stop()


class AttachedProcess(_MeasuredJob):
    """A running process that is measured, until it ends or `stop`.

    with jobmeter.attach(pid) as attached:
        ...
    print(attached.run.cpu_seconds)
    """

    run: Run
    """What it used; once measuring has ended."""

    def stop(self) -> Run:
        """Stop measuring, and return what was used since; the process keeps running."""
        self._session.stop()
        return self.wait()

    def wait(self) -> Run:
        """Wait for the end of the process and its descendants, or for `stop`, and return what they used."""
        self.run = super().wait()
        return self.run

    def __enter__(self) -> AttachedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


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
    requirement = requirement_of(cpus, memory, runtime)
    if enforce and not requirement.requested():
        raise OptionRefused("enforce: has no effect without cpus, memory or runtime")
    options = measure_options(name, labels, interval, window, measurements, store, keep)
    words, directory = [os.fspath(word) for word in command], None if cwd is None else os.fspath(cwd)
    job: JobControl
    if container is not None:
        if orphans is not None:
            raise OptionRefused("orphans: has no effect in a container: its processes end with its first")
        job = _in_container(container, words, directory, env or {}, requirement)
    else:
        environment = None if env is None else dict(env)
        job = LaunchedCommand(JobOptions(words, directory, environment, None, requirement, enforce, orphans or "leave"))
    running = RunningJob(job, options)
    running._session.start()
    return running


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
) -> AttachedProcess:
    """Measure a running process and its descendants from now until all of them end, or `stop` of what is returned.

    UsageError when there is no such process.
    """
    attached = AttachedProcess(
        RunningProcess(pid), measure_options(name, labels, interval, window, measurements, store, keep)
    )
    attached._session.start()
    return attached


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
    monitor: bool = False,
) -> WorkflowResult:
    """Run the jobs of a spec to their end. Options are those of `jobmeter workflow run`.

    UsageError when the spec is wrong or a job can never fit; jobs that fail are no error. What the command would
    print as a warning is a Python warning.
    """
    from jobmeter.workflow.service import WorkflowOptions, claim, execute, prepare_run

    options = WorkflowOptions(
        store=resolve("store", store, warn),
        engine=engine,
        engine_options=engine_options or {},
        cpus=cpus,
        memory_bytes=memory_bytes(memory),
        gpus=gpus,
        enforce=enforce,
        monitoring=monitoring,
        redact=resolve("redact", None, warn),
        monitor=monitor,
    )
    return execute(claim(prepare_run(os.fspath(spec), options, warn)), warn=warn)


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
        options = measure_options(name, labels, interval, window, measurements, store, keep)
        self._session = Session(RunningContainer(container, engine=engine), options, meter=PROCESS_METER)
        self._session.prepare()

    def start(self) -> None:
        self._session.start()

    def stop(self) -> None:
        """Stop measuring; the container keeps running."""
        self._session.stop()

    def wait(self) -> Run:
        """Wait for the end of the container, or for `stop`, and return what it used since `start`."""
        self.run = Run(self._session.wait(), stored_windows(self._session.journal_path, self._session.id))
        return self.run

    def __enter__(self) -> ContainerMeter:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.wait()
