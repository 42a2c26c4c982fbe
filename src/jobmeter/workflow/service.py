"""Runs workflows, for all commands and for the Python API.

`prepare_run` or `prepare_resume` checks everything and starts nothing; `claim` makes this process the runner of the
workflow; `execute` runs it to its end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.byte_text import to_path, to_text
from jobmeter.engines import DEFAULT, load_engine
from jobmeter.engines.contract import Capacity, Ended, Engine, LeftTask, Task, Token
from jobmeter.errors import JobmeterError, LaunchError, StoreError, UsageError
from jobmeter.journal.writer import RunJournal
from jobmeter.model import Status, workflow_id
from jobmeter.session.measuring import ignore
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.auto_size import sized_plan
from jobmeter.workflow.cluster_watch import ClusterWatch, check_watchable, watching
from jobmeter.workflow.containers import container_runtimes
from jobmeter.workflow.directory import RunDirectory, StoredPlan, find_run, new_run, run_ids, storable_options
from jobmeter.workflow.history import attempts_of
from jobmeter.workflow.inputs import check_inputs
from jobmeter.workflow.listener import Listener
from jobmeter.workflow.plan import Plan, check_fit, load_plan
from jobmeter.workflow.report import Written, draw_report
from jobmeter.workflow.result import Result
from jobmeter.workflow.resume import reasons_to_run, renumber
from jobmeter.workflow.run import WorkflowRun
from jobmeter.workflow.samples import write_samples
from jobmeter.workflow.spec.read.loading import is_spec
from jobmeter.workflow.task_log import StartedTask, unended_tasks
from jobmeter.workflow.task_maker import RunOptions
from jobmeter.workflow.validation import unused_fields

if TYPE_CHECKING:
    from jobmeter.record.cluster_types import ClusterReport

Warn = Callable[[str], None]


class WorkflowOptions(NamedTuple):
    """The options of `workflow run` and `workflow resume`."""

    store: str
    engine: str | None = None  # None: local; for a run that is resumed, the engine it was run on
    engine_options: Mapping[str, str] = {}
    cpus: float | None = None  # upper limits for all jobs together; None: what the engine has
    memory_bytes: int | None = None
    gpus: int | None = None
    enforce: bool = False
    monitoring: bool = True
    redact: list[str] | None = None  # what to hide in command lines; None: the default patterns
    auto_size: bool = False  # request what `size` advises, and more where that was not enough
    monitor: bool = False  # watch the cluster during the run: what is reserved and used there


class WorkflowListener(Listener):
    """A listener that is also called at the end of the whole workflow."""

    def finished(self, result: Result) -> None: ...
    def plotted(self, report: Written) -> None: ...
    def sampled(self, path: str) -> None: ...
    def watched(self, report: ClusterReport, page: str) -> None: ...


class Prepared(NamedTuple):
    """A workflow that was checked and can be run."""

    plan: Plan
    options: WorkflowOptions
    engine_name: str
    engine: Engine
    capacity: Capacity
    directory: RunDirectory | None = None  # None: `claim` makes a new one
    before: Sequence[Attempt] = ()  # attempts of earlier runners
    reasons: Mapping[int, str] | None = None  # job → why it must run; None: a new run, of all jobs
    left: Sequence[StartedTask] = ()  # tasks that a killed runner started and whose end is not recorded

    @property
    def done(self) -> frozenset[int]:
        """Jobs that need not run."""
        if self.reasons is None:
            return frozenset()
        return frozenset(job.number for job in self.plan.jobs if job.number not in self.reasons)


def prepare_run(
    spec: str, options: WorkflowOptions, warn: Warn = ignore, *, only_changed: bool = False, dry_run: bool = False
) -> Prepared:
    """Prepare a new run of the spec in a file, and write nothing. Raises UsageError or LaunchError if it cannot be run.

    With `only_changed`, the newest run is resumed instead, if there is one: jobs that are up to date do not run.
    """
    plan = load_plan(spec)
    if only_changed and run_ids(options.store, workflow_id(plan.name)):
        return prepare_resume(spec, None, options, warn, dry_run=dry_run)
    prepared = _prepare(plan, options, DEFAULT)
    _warn_of_other_spec(options.store, prepared.plan, warn)
    _warn_of_unused(prepared, warn)
    return prepared


def prepare_resume(
    workflow: str | None, run_id: int | None, options: WorkflowOptions, warn: Warn = ignore, *, dry_run: bool = False
) -> Prepared:
    """Prepare the rest of an earlier run, with the spec as it is now. Unless it is a dry run, the run is claimed."""
    directory = find_run(options.store, workflow, run_id)
    stored_plan = directory.plan()
    plan = load_plan(_spec_path(stored_plan, workflow))
    options = _as_before(options, stored_plan)
    prepared = _prepare(plan, options, DEFAULT)
    _warn_of_unused(prepared, warn)
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
            reasons=reasons_to_run(plan.jobs, before, directory.data, plan.user_data),
            left=unended_tasks(directory.tasks, ended),
        )
    except BaseException:
        directory.release()
        raise


def claim(prepared: Prepared) -> Prepared:
    """Make this process the runner of the workflow until `execute` returns. A new run gets its directory."""
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
    """Run a claimed workflow to its end; a caller that shows its progress passes its own `run`."""
    directory, plan, options = prepared.directory, prepared.plan, prepared.options
    assert directory is not None, "it was not claimed"
    listener = listener or WorkflowListener()
    try:
        _take_over(prepared, directory, warn)
        if is_done(prepared):
            return Result([], {}, 0, False, 0.0, 0)
        watch = _watch_cluster(prepared, directory)
        with watching(watch):
            result = run(_workflow_run(prepared, directory, listener, warn))
        if result.succeeded:
            directory.data.forget(name for name, data in plan.user_data.items() if data.is_ephemeral)
    finally:
        directory.release()
    listener.finished(result)
    if watch is not None and (report := watch.stop()) is not None:
        listener.watched(report, watch.page)
    if not plan.monitor.enabled or not options.monitoring:
        return result
    if (
        plan.monitor.granularity == "time_series"
        and (path := write_samples(directory, options.store, warn)) is not None
    ):
        listener.sampled(path)
    if plan.monitor.generate_plots:
        runs = [attempt.run for attempt in (*prepared.before, *result.attempts)]
        if (drawn := draw_report(directory, options.store, runs, warn)) is not None:
            listener.plotted(drawn)
    return result


def _watch_cluster(prepared: Prepared, directory: RunDirectory) -> ClusterWatch | None:
    options = prepared.options
    if not options.monitor:
        return None
    return ClusterWatch(prepared.engine_name, options.engine_options, options.store, directory.path)


def _take_over(prepared: Prepared, directory: RunDirectory, warn: Warn) -> None:
    """Write the runner, the plan and the user data, and end tasks elsewhere. If that fails, a new run is removed."""
    plan, options = prepared.plan, prepared.options
    try:
        if not is_done(prepared):
            directory.announce()
            # Before the plan names another engine: if it fails, the next `resume` must find the engine of these tasks.
            _end_on_other_engines(prepared, warn)
        # Also if no job is left to run: the last ones may have been removed from the spec.
        directory.keep_plan(plan, prepared.capacity, prepared.engine_name, options.redact, options.engine_options)
        if plan.user_data and not is_done(prepared):
            directory.data.prepare(plan.user_data, {name for job in plan.jobs for name in job.output_data})
    except StoreError:
        if prepared.reasons is None:
            directory.remove()
        raise


def is_done(prepared: Prepared) -> bool:
    """Whether a resumed run has no job left to run, and no task of a killed runner left."""
    return prepared.reasons is not None and not prepared.reasons and not prepared.left


def _workflow_run(prepared: Prepared, directory: RunDirectory, listener: Listener, warn: Warn) -> WorkflowRun:
    plan, options = prepared.plan, prepared.options
    if options.auto_size:
        plan = sized_plan(plan, options.store, prepared.capacity, warn)
    return WorkflowRun(
        plan,
        directory,
        RunOptions(
            store=options.store,
            capacity=prepared.capacity,
            enforce=options.enforce or plan.enforce,
            monitoring=options.monitoring,
            engine=prepared.engine_name,
            engine_options=storable_options(options.engine_options, options.redact),
            redact=options.redact,
            label_inputs=options.auto_size,
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
    if options.monitor:
        check_watchable(name)
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


def _as_before(options: WorkflowOptions, stored_plan: StoredPlan) -> WorkflowOptions:
    """The options, with the engine and the engine options of the earlier run where none are given now."""
    before = stored_plan.get("engine", DEFAULT)
    if options.engine not in (None, before):
        return options
    return options._replace(
        engine=before, engine_options={**stored_plan.get("engine_options", {}), **options.engine_options}
    )


def _check_bounds(options: WorkflowOptions) -> None:
    for name, amount in (("cpus", options.cpus), ("memory", options.memory_bytes)):
        if amount is not None and not 0 < amount < float("inf"):
            raise UsageError(f"--{name}: {amount!r} is not a number above 0")
    if options.gpus is not None and options.gpus < 0:
        raise UsageError(f"--gpus: {options.gpus!r} is below 0")


def _warn_of_unused(prepared: Prepared, warn: Warn) -> None:
    """Warn of what the spec has and neither jobmeter nor the engine uses."""
    unused = unused_fields(prepared.plan, prepared.engine.capabilities)
    if unused.nodes:
        warn(f"engine {prepared.engine_name} has no nodes to request: {', '.join(unused.nodes)} not used")
    if unused.custom:
        warn(f"engine {prepared.engine_name} has no resources of its own: {', '.join(unused.custom)} not used")
    if unused.ignored:
        warn(f"without effect: {', '.join(unused.ignored)}")


def _warn_of_other_spec(store: str, plan: Plan, warn: Warn) -> None:
    """Warn if the last run was of another spec: two specs of one name are one workflow, with one history."""
    workflow = workflow_id(plan.name)
    runs = run_ids(store, workflow)
    if not runs:
        return
    try:
        before = RunDirectory(store, workflow, runs[-1]).plan()["spec"]
    except StoreError as error:
        warn(str(error))  # a new run does not need it
        return
    if before != to_text(plan.path):
        warn(f"the last run of workflow {plan.name} was of {before}. Give one another `name` to keep them apart")


def _spec_path(stored_plan: StoredPlan, named: str | None) -> str:
    """The path of an earlier run's spec: `named` if that is a spec, else as stored. Raises UsageError if it is gone."""
    is_named = named is not None and is_spec(named) and os.path.isfile(named)
    path = str(named) if is_named else to_path(str(stored_plan["spec"]))
    if not os.path.exists(path):
        raise UsageError(f"{path}: the spec of this workflow is gone. Name where it is: jobmeter workflow resume SPEC")
    return path


def _job_numbers(stored_plan: StoredPlan, before: Sequence[Attempt]) -> dict[str, int]:
    """Name → number of every job that was ever in the spec, so that no new job gets the number of another one."""
    return {
        **{attempt.name: attempt.number for attempt in before},
        **{job["name"]: job["job_id"] for job in stored_plan["jobs"]},
    }


def _end_on_other_engines(prepared: Prepared, warn: Warn) -> None:
    """End tasks of a killed runner on engines other than the one used now, so that no job runs twice at once."""
    by_engine: dict[tuple[str, tuple[tuple[str, str], ...]], list[LeftTask]] = {}
    for task in prepared.left:
        if task.engine != prepared.engine_name:
            key = task.engine, tuple(sorted(task.engine_options.items()))
            by_engine.setdefault(key, []).append(LeftTask(task.number, task.attempt, task.token, False))
    for (name, options), left in sorted(by_engine.items()):
        try:
            engine = load_engine(name, dict(options))
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
    """A journal that writes nothing, for an engine that only ends the tasks of a killed runner."""

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
