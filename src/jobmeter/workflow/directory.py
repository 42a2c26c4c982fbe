"""The directory of a run of a workflow: its plan, its logs, and which process runs it.

`<store>/workflows/<workflow>/<run>/`: `plan.json`, `runner.json` (the process that runs it, which locks the file until
it ends), `tasks.jsonl` (how to find started tasks again), `settled.jsonl` (which jobs were given up), `control` (takes
requests while the workflow runs) and `logs/`. What its jobs used is in the journals, as for every run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.atomic_file import replacing
from jobmeter.byte_text import json_text, to_text
from jobmeter.errors import StoreError, UsageError
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_stat
from jobmeter.model import workflow_id
from jobmeter.redaction import Redaction, redaction
from jobmeter.store_access import Access, make_directory, make_store_directory, open_or_create, store_access
from jobmeter.suggestion import suggest
from jobmeter.times import utc
from jobmeter.workflow.plan import Job, Plan, load_plan
from jobmeter.workflow.spec.read.loading import is_spec
from jobmeter.workflow.user_data import DataDirectory

if TYPE_CHECKING:
    from jobmeter.engines.contract import Capacity

SCHEMA = "jobmeter.workflow/1"

StoredPlan = dict[str, Any]
"""A plan as plan.json holds it."""

_TRIES = 10
_LOOK = 0.01


class Runner(NamedTuple):
    """The process that runs a workflow, or ran it last."""

    pid: int
    host: str
    start: int | None

    def lives(self) -> bool:
        """Whether that process, and not another one with its pid, runs on this machine; True if that is not known."""
        return self.start is None or _start_of(self.pid) == self.start


class RunDirectory:
    """One run of one workflow."""

    def __init__(self, store: str, workflow: str, run_id: int) -> None:
        self.store = store
        self.workflow = workflow
        self.run_id = run_id
        self.path = f"{store}/workflows/{workflow}/{run_id}"
        self.logs = f"{self.path}/logs"
        self.tasks = f"{self.path}/tasks.jsonl"  # see `workflow.task_log`
        self.settled = f"{self.path}/settled.jsonl"  # see `workflow.settled`
        self.control = f"{self.path}/control"  # see `workflow.control`
        self.data = DataDirectory(f"{self.path}/data")
        self._lock: int | None = None

    def log_paths(self, job: str, attempt: int) -> tuple[str, str]:
        """Where stdout and stderr of an attempt go."""
        return f"{self.logs}/{job}.{attempt}.out", f"{self.logs}/{job}.{attempt}.err"

    def _access(self) -> Access:
        return store_access(self.store)

    def keep_plan(
        self,
        plan: Plan,
        capacity: Capacity,
        engine: str,
        redact: Sequence[str] | None = None,
        engine_options: Mapping[str, str] = {},
    ) -> None:
        """Write `plan.json`, with what later commands need of the plan. Replaces an earlier one."""
        path = f"{self.path}/plan.json"
        hide = redaction(None if redact is None else tuple(redact))
        # A resumed run keeps the time at which it was first started.
        started = self.plan()["started"] if os.path.exists(path) else utc(time.time())
        about = {
            "schema": SCHEMA,
            "id": self.workflow,
            "name": plan.name,
            "description": plan.description,
            "user": plan.user,
            "run_id": self.run_id,
            "spec": to_text(plan.path),
            "started": started,
            "engine": engine,
            "engine_options": storable_options(engine_options, redact),
            "capacity": capacity.known(),
            **_further(plan),
            "jobs": [_job_entry(job, hide) for job in plan.jobs],
        }
        try:
            with replacing(path, access=self._access()) as file:
                file.write(json_text(about, separators=(",", ":")))
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None

    def plan(self) -> StoredPlan:
        """The stored plan. Raises StoreError if it cannot be read."""
        path = f"{self.path}/plan.json"
        try:
            with open(path, encoding="utf-8") as file:
                plan: Any = json.load(file)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None
        except ValueError:
            plan = None
        if not isinstance(plan, dict):
            raise StoreError(f"{path}: damaged. The jobs' figures are kept: `jobmeter ls` lists them.")
        if plan.get("schema") != SCHEMA:
            raise StoreError(f"{path}: written as {plan.get('schema')}, this version reads {SCHEMA}. Upgrade jobmeter.")
        return plan

    def claim(self) -> None:
        """Lock the run for this process, until it ends or releases it. Raises UsageError if another process runs it."""
        path = f"{self.path}/runner.json"
        try:
            lock = open_or_create(path, self._access(), os.O_RDWR)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None
        try:
            _lock(lock)
        except OSError:
            os.close(lock)
            runner = self.runner()
            who = f"process {runner.pid} on {runner.host}" if runner else "another process"
            raise UsageError(
                f"workflow {self.workflow} (run {self.run_id}) is being run by {who}. "
                f"`jobmeter workflow cancel {self.workflow}` ends it."
            ) from None
        self._lock = lock

    def announce(self) -> None:
        """Write this process, which claimed the run, into `runner.json`. The workflow is then the one that ran last."""
        assert self._lock is not None, "it was not claimed"
        me = json.dumps(Runner(os.getpid(), os.uname().nodename, _start_of(os.getpid()))._asdict()).encode()
        try:
            # Truncate last: on a full disk, a file that is emptied first may not get its space back.
            os.pwrite(self._lock, me, 0)
            os.ftruncate(self._lock, len(me))
        except OSError as error:
            raise StoreError(f"{self.path}/runner.json: {error.strerror}") from None

    def remove(self) -> None:
        """Remove a run that has started no job."""
        shutil.rmtree(self.path, ignore_errors=True)

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def is_being_run(self) -> bool:
        try:
            lock = os.open(f"{self.path}/runner.json", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(lock)
        return False

    def runner_began(self) -> float:
        """When the process that runs it, or ran it last, began: seconds since 1970; 0 if it was never run."""
        try:
            return os.stat(f"{self.path}/runner.json").st_mtime
        except OSError:
            return 0.0

    def runner(self) -> Runner | None:
        """The process that runs it, or ran it last; None if that is not known."""
        try:
            with open(f"{self.path}/runner.json", encoding="utf-8") as file:
                return Runner(**json.load(file))
        except (OSError, ValueError, TypeError):
            return None


def storable_options(engine_options: Mapping[str, str], redact: Sequence[str] | None) -> dict[str, str]:
    """The options of an engine but those that hold a secret: the user must give these again to resume the run."""
    hide = redaction(None if redact is None else tuple(redact))
    return {name: value for name, value in engine_options.items() if hide.text(value) == value}


def _further(plan: Plan) -> dict[str, Any]:
    """The fields of a plan that only some specs have."""
    requests = plan.node_requests
    nodes = {name: value for name, value in requests._asdict().items() if value}
    further = {"project": plan.project, "metadata": plan.metadata, "node_requests": nodes}
    return {name: value for name, value in further.items() if value}


def _job_entry(job: Job, hide: Redaction) -> dict[str, Any]:
    further = {
        "inputs": [to_text(path) for path in job.inputs],
        "outputs": [to_text(path) for path in job.outputs],
        "input_data": list(job.input_data),
        "output_data": list(job.output_data),
        "runs_after_failure": job.runs_after_failure,
        "is_action": job.is_action,
        "num_nodes": job.num_nodes if job.num_nodes > 1 else None,
        "scheduler": job.scheduler,
        "custom": dict(job.custom),
    }
    return {
        "job_id": job.number,
        "name": job.name,
        "step": job.step,
        "command": hide.text(job.script),
        "requirement": job.requirement.requested(),
        "blocked_by": list(job.blocked_by),
        **{name: value for name, value in further.items() if value},
    }


def new_run(store: str, name: str) -> RunDirectory:
    """Make the directory of the next run of the workflow of this name, and claim it."""
    workflow = workflow_id(name)
    try:
        make_store_directory(store, "journal")  # the whole store gets the permissions of this directory
        access = make_store_directory(store, "workflows", workflow)
        run_id = max(_numbers(store, workflow), default=0) + 1
        while True:
            directory = RunDirectory(store, workflow, run_id)
            try:
                make_directory(directory.path, access)
                break
            except FileExistsError:
                run_id += 1  # another process was faster
    except OSError as error:
        raise _not_writable(error) from None
    try:
        make_directory(directory.logs, access)
        directory.claim()
        directory.announce()
    except (OSError, StoreError) as error:
        directory.release()
        directory.remove()
        raise (_not_writable(error) if isinstance(error, OSError) else error) from None
    return directory


def _not_writable(error: OSError) -> StoreError:
    return StoreError(f"{error.filename}: {error.strerror}. Name another place with --store.")


def run_ids(store: str, workflow: str) -> list[int]:
    """The run numbers of a workflow, ascending. A run without a plan was killed before it began, and is left out."""
    place = f"{store}/workflows/{workflow}"
    return [number for number in _numbers(store, workflow) if os.path.exists(f"{place}/{number}/plan.json")]


def _numbers(store: str, workflow: str) -> list[int]:
    with contextlib.suppress(OSError):
        return sorted(int(name) for name in os.listdir(f"{store}/workflows/{workflow}") if name.isdecimal())
    return []


def workflows(store: str) -> list[str]:
    """The ids of all workflows that were run, sorted by when their newest run began, latest first."""
    names = []
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(f"{store}/workflows") if run_ids(store, name)]
    return sorted(names, key=lambda name: -RunDirectory(store, name, run_ids(store, name)[-1]).runner_began())


def all_runs(store: str) -> Iterator[RunDirectory]:
    for workflow in workflows(store):
        for run_id in reversed(run_ids(store, workflow)):
            yield RunDirectory(store, workflow, run_id)


def find_run(store: str, text: str | None, run_id: int | None = None) -> RunDirectory:
    """The newest run, or run `run_id`, of the workflow that `text` names. Raises UsageError if there is none.

    `text` is the id, the name or the spec of a workflow; `last` or None is the workflow that ran last.
    """
    names = workflows(store)
    if text is None or (text == "last" and "last" not in names):
        if not names:
            raise UsageError("no workflow was run yet. `jobmeter workflow run SPEC` runs one.")
        workflow = names[0]
    else:
        workflow = _workflow(text, names)
    runs = run_ids(store, workflow)
    if run_id is not None and run_id not in runs:
        there = ", ".join(map(str, runs[-10:]))
        raise UsageError(f"workflow {workflow} has no run {run_id}. There are: {there}.")
    return RunDirectory(store, workflow, runs[-1] if run_id is None else run_id)


def _workflow(text: str, names: list[str]) -> str:
    for candidate in (text, workflow_id(text)):
        if candidate in names:
            return candidate
    if is_spec(text) and os.path.isfile(text):
        workflow = workflow_id(load_plan(text).name)
        if workflow in names:
            return workflow
        raise UsageError(f"{text}: this workflow was not run yet. `jobmeter workflow run {text}` does it.")
    hint = suggest(workflow_id(text), names, "`jobmeter workflow list` lists those that were run.")
    raise UsageError(f"there is no workflow {text!r}. {hint}")


def _lock(descriptor: int) -> None:
    """Take the lock. Raises OSError if another process keeps it; `is_being_run` holds it for a moment only."""
    for tries_left in reversed(range(_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if tries_left == 0:
                raise
        time.sleep(_LOOK)


def _start_of(pid: int) -> int | None:
    try:
        return read_stat(THIS_MACHINE, pid).start
    except (OSError, ValueError):
        return None
