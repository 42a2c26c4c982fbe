"""The one way to run a workflow, for every command and for the Python API.

`prepare_run` or `prepare_resume` checks everything and starts nothing; `claim` makes this process the one that runs it;
`execute` runs it to the end.
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
from jobmeter.workflow.directory import RunDirectory, StoredPlan, find_run, new_run, run_ids
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

if TYPE_CHECKING:
    from jobmeter.record.cluster_types import ClusterReport

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
    redact: list[str] | None = None  # what to hide in command lines; None: the default patterns
    auto_size: bool = False  # request what `size` advises, and more where that was not enough
    monitor: bool = False  # watch the cluster meanwhile: what is reserved there, and what is used


class WorkflowListener(Listener):
    """Also called at the end of the whole workflow."""

    def finished(self, result: Result) -> None: ...
    def plotted(self, report: Written) -> None: ...
    def sampled(self, path: str) -> None: ...
    def watched(self, report: ClusterReport, page: str) -> None: ...


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


def prepare_run(
    spec: str, options: WorkflowOptions, warn: Warn = ignore, *, only_changed: bool = False, dry_run: bool = False
) -> Prepared:
    """A new run of the spec in a file. UsageError or LaunchError when it cannot be run; nothing was written.

    With `only_changed` it is the newest run that goes on, if there is one: what is up to date does not run.
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
    """The rest of an earlier run, of the spec as it is now. Unless it is a dry run, the run is claimed."""
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
        _write_down(prepared, directory)
        if is_done(prepared):
            return Result([], {}, 0, False, 0.0, 0)
        _end_on_other_engines(prepared, warn)
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


def _write_down(prepared: Prepared, directory: RunDirectory) -> None:
    """Write the plan, who runs it, and its user data. A new run for which there is no space leaves nothing."""
    plan, options = prepared.plan, prepared.options
    try:
        # Also when nothing is left to do: what was may have left the spec.
        directory.keep_plan(plan, prepared.capacity, prepared.engine_name, options.redact, options.engine_options)
        if is_done(prepared):
            return
        directory.announce()
        if plan.user_data:
            directory.data.prepare(plan.user_data, {name for job in plan.jobs for name in job.output_data})
    except StoreError:
        if prepared.reasons is None:
            directory.remove()
        raise


def is_done(prepared: Prepared) -> bool:
    """Whether a run that is resumed has nothing left to run, and nothing left running."""
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
    """With the engine, and the options of it, that the run had before, where none are given now."""
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
    """Say once what the spec has that nobody here uses."""
    plan = prepared.plan
    nodes = [*plan.node_requests.fields(), *(["num_nodes"] if any(job.num_nodes > 1 for job in plan.jobs) else [])]
    if nodes and not prepared.engine.capabilities.has_nodes:
        warn(f"engine {prepared.engine_name} has no nodes to request: {', '.join(nodes)} not used")
    custom = sorted({name for job in plan.jobs for name in job.custom})
    if custom and not prepared.engine.capabilities.has_custom:
        warn(f"engine {prepared.engine_name} has no resources of its own: {', '.join(custom)} not used")
    if plan.without_effect:
        warn(f"without effect: {', '.join(plan.without_effect)}")


def _warn_of_other_spec(store: str, plan: Plan, warn: Warn) -> None:
    """Workflows of one name are one, and its history that of both."""
    workflow = workflow_id(plan.name)
    runs = run_ids(store, workflow)
    if runs and (before := RunDirectory(store, workflow, runs[-1]).plan()["spec"]) != to_text(plan.path):
        warn(f"the last run of workflow {plan.name} was of {before}: name one of them otherwise to keep them apart")


def _spec_path(stored_plan: StoredPlan, named: str | None) -> str:
    """Where the spec of an earlier run is now."""
    is_named = named is not None and is_spec(named) and os.path.isfile(named)
    path = str(named) if is_named else to_path(str(stored_plan["spec"]))
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
