"""The one way to run a workflow, for every command and for the Python API.

`prepare_run` or `prepare_resume` checks everything and starts nothing; `claim` makes this process the one that runs it;
`execute` runs it to the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jobmeter.engines import DEFAULT, load_engine
from jobmeter.engines.contract import Capacity, Ended, Engine, LeftTask, Task, Token
from jobmeter.errors import JobmeterError, LaunchError, UsageError
from jobmeter.journal.writer import RunJournal
from jobmeter.model import Status, workflow_id
from jobmeter.session.measuring import ignore
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.containers import container_runtimes
from jobmeter.workflow.directory import RunDirectory, StoredPlan, find_run, new_run, run_ids
from jobmeter.workflow.history import attempts_of
from jobmeter.workflow.inputs import check_inputs
from jobmeter.workflow.plan import Plan, check_fit, load_plan
from jobmeter.workflow.plots import Plots, draw_plots
from jobmeter.workflow.resume import reasons_to_run, renumber
from jobmeter.workflow.run import Listener, Result, RunOptions, WorkflowRun
from jobmeter.workflow.spec.read.loading import FORMATS
from jobmeter.workflow.task_log import StartedTask, unended_tasks

Warn = Callable[[str], None]


class WorkflowOptions(NamedTuple):
    """The options of `workflow run` and `workflow resume`."""

    store: str
    engine: str | None = None  # None: local; for a run that is resumed, the engine it was run on
    engine_options: Mapping[str, str] = {}
    cpus: float | None = None  # bounds; None: what the engine has
    memory_bytes: int | None = None
    gpus: int | None = None
    enforce: bool = False
    monitoring: bool = True


class WorkflowListener(Listener):
    """Also called at the end of the whole workflow."""

    def finished(self, result: Result) -> None: ...
    def plotted(self, plots: Plots) -> None: ...


class Prepared(NamedTuple):
    """A workflow that can be run: everything is checked."""

    plan: Plan
    options: WorkflowOptions
    engine_name: str
    engine: Engine
    capacity: Capacity
    directory: RunDirectory | None = None  # None: a new one
    before: Sequence[Attempt] = ()  # attempts of an earlier time
    reasons: Mapping[int, str] | None = None  # job → why it must run; None: a new run, of all jobs
    left: Sequence[StartedTask] = ()  # what a killed runner started and nobody has seen the end of

    @property
    def done(self) -> frozenset[int]:
        """Jobs that need not run."""
        if self.reasons is None:
            return frozenset()
        return frozenset(job.number for job in self.plan.jobs if job.number not in self.reasons)


def prepare_run(spec: str, options: WorkflowOptions, warn: Warn = ignore) -> Prepared:
    """A new run of the spec in a file. UsageError or LaunchError when it cannot be run; nothing was written."""
    prepared = _prepare(load_plan(spec), options, DEFAULT)
    _warn_of_other_spec(options.store, prepared.plan, warn)
    return prepared


def prepare_resume(
    workflow: str | None, run_id: int | None, options: WorkflowOptions, warn: Warn = ignore, *, dry_run: bool = False
) -> Prepared:
    """The rest of an earlier run, of the spec as it is now. Unless it is a dry run, the run is claimed."""
    directory = find_run(options.store, workflow, run_id)
    stored_plan = directory.plan()
    plan = load_plan(_spec_path(stored_plan, workflow))
    prepared = _prepare(plan, options, stored_plan.get("engine", DEFAULT))
    if not dry_run:
        directory.claim()
    try:
        before = attempts_of(options.store, directory, warn)
        plan = renumber(plan, _job_numbers(stored_plan, before))
        ended = {(each.number, each.attempt) for each in before if each.status not in (Status.LOST, Status.RUNNING)}
        return prepared._replace(
            plan=plan,
            directory=directory,
            before=before,
            reasons=reasons_to_run(plan.jobs, before),
            left=unended_tasks(directory.tasks, ended),
        )
    except BaseException:
        directory.release()
        raise


def claim(prepared: Prepared) -> Prepared:
    """Make this process the one that runs the workflow, until `execute` is done: with a directory of its own."""
    if prepared.directory is not None:
        return prepared
    return prepared._replace(directory=new_run(prepared.options.store, prepared.plan.name))


def execute(
    prepared: Prepared,
    *,
    listener: WorkflowListener | None = None,
    warn: Warn = ignore,
    run: Callable[[WorkflowRun], Result] = WorkflowRun.run,
) -> Result:
    """Run a workflow that was claimed to its end; `run` is what runs it, for those who watch it meanwhile."""
    directory, plan, options = prepared.directory, prepared.plan, prepared.options
    assert directory is not None, "it was not claimed"
    listener = listener or WorkflowListener()
    try:
        # Also when nothing is left to do: what was may have left the spec.
        directory.keep_plan(plan, prepared.capacity, prepared.engine_name)
        if is_done(prepared):
            return Result([], {}, 0, False, 0.0, 0)
        directory.announce()
        _end_on_other_engines(prepared, warn)
        result = run(_workflow_run(prepared, directory, listener, warn))
    finally:
        directory.release()
    listener.finished(result)
    if plan.monitor.generate_plots and plan.monitor.enabled and options.monitoring:
        runs = [attempt.run for attempt in (*prepared.before, *result.attempts)]
        if (plots := draw_plots(directory, options.store, runs, warn)) is not None:
            listener.plotted(plots)
    return result


def is_done(prepared: Prepared) -> bool:
    """Whether a run that is resumed has nothing left to run, and nothing left running."""
    return prepared.reasons is not None and not prepared.reasons and not prepared.left


def _workflow_run(prepared: Prepared, directory: RunDirectory, listener: Listener, warn: Warn) -> WorkflowRun:
    plan, options = prepared.plan, prepared.options
    return WorkflowRun(
        plan,
        directory,
        RunOptions(
            store=options.store,
            capacity=prepared.capacity,
            enforce=options.enforce or plan.enforce,
            monitoring=options.monitoring,
            engine=prepared.engine_name,
        ),
        before=prepared.before,
        done=prepared.done,
        left=prepared.left,
        listener=listener,
        warn=warn,
        engine=prepared.engine,
    )


def _prepare(plan: Plan, options: WorkflowOptions, default_engine: str) -> Prepared:
    """Check that the plan can be run on its engine."""
    _check_bounds(options)
    name = options.engine or default_engine
    engine = load_engine(name, options.engine_options)
    runtimes = container_runtimes(plan.jobs)
    engine.check()
    capacity = engine.capacity().bounded(options.cpus, options.memory_bytes, options.gpus)
    check_fit(plan.jobs, capacity)
    if engine.capabilities.shares_files:
        check_inputs(plan)
    if runtimes:
        engine.check(runtimes)
    return Prepared(plan, options, name, engine, capacity)


def _check_bounds(options: WorkflowOptions) -> None:
    for name, amount in (("cpus", options.cpus), ("memory", options.memory_bytes)):
        if amount is not None and not 0 < amount < float("inf"):
            raise UsageError(f"--{name}: {amount!r} is not a number above 0")
    if options.gpus is not None and options.gpus < 0:
        raise UsageError(f"--gpus: {options.gpus!r} is below 0")


def _warn_of_other_spec(store: str, plan: Plan, warn: Warn) -> None:
    """Workflows of one name are one, and its history that of both."""
    workflow = workflow_id(plan.name)
    runs = run_ids(store, workflow)
    if runs and (before := RunDirectory(store, workflow, runs[-1]).plan()["spec"]) != plan.path:
        warn(f"the last run of workflow {plan.name} was of {before}: name one of them otherwise to keep them apart")


def _spec_path(stored_plan: StoredPlan, named: str | None) -> str:
    """Where the spec of an earlier run is now."""
    is_spec = named is not None and named.lower().endswith(tuple(FORMATS)) and os.path.isfile(named)
    path = str(named) if is_spec else str(stored_plan["spec"])
    if not os.path.exists(path):
        raise UsageError(f"{path}: the spec of this workflow is gone. Name where it is: jobmeter workflow resume SPEC")
    return path


def _job_numbers(stored_plan: StoredPlan, before: Sequence[Attempt]) -> dict[str, int]:
    """Name → number of every job that ever was in the spec: what another was called is not given to a new one."""
    return {
        **{attempt.name: attempt.number for attempt in before},
        **{job["name"]: job["job_id"] for job in stored_plan["jobs"]},
    }


def _end_on_other_engines(prepared: Prepared, warn: Warn) -> None:
    """End what was left on engines other than that which is used now, lest a job runs twice at once."""
    others = [task for task in prepared.left if task.engine != prepared.engine_name]
    for name in sorted({task.engine for task in others}):
        left = [LeftTask(each.number, each.attempt, each.token, False) for each in others if each.engine == name]
        try:
            engine = load_engine(name)
            engine.check()
            engine.open(_EndReceiver(warn))
            try:
                ended = engine.recover(left).ended
            finally:
                engine.close()
        except JobmeterError as error:
            raise LaunchError(f"jobs of a killed runner may still run on engine {name}: {error}") from None
        if ended:
            warn(f"ended what was left of {ended} job{'s' * (ended > 1)} whose runner was killed")


class _NoJournal:
    """For an engine that is only to end what was left on it."""

    path = ""
    failed: str | None = None

    def begin(self, run_id: str, header: Mapping[str, Any]) -> None: ...
    def append(self, run_id: str, *lines: object) -> None: ...


class _EndReceiver:
    def __init__(self, warn: Warn) -> None:
        self.journal: RunJournal = _NoJournal()
        self.warn = warn

    def keep_token(self, task: Task, token: Token) -> None: ...
    def ended(self, ended: Ended) -> None: ...
    def broke(self, error: Exception) -> None: ...
