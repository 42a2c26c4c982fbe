"""Where a run of a workflow keeps its plan, its logs and the word that it is being run.

`<store>/workflows/<workflow>/<run>/`: `plan.json`, `runner.json` (who runs it; locked while they do), `tasks.jsonl`
(how to find again what was started), `settled.jsonl` (which jobs were given up), `control` (takes requests while it is
run) and `logs/`. What its jobs used is in the journals, as of every run.
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
    """The process that runs a workflow, or did."""

    pid: int
    host: str
    start: int | None

    def lives(self) -> bool:
        """Whether that process, and no other of its pid, is there on this machine."""
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
        engine: str = "local",
        redact: Sequence[str] | None = None,
        engine_options: Mapping[str, str] = {},
    ) -> None:
        """Write what later commands need to know of the plan, in place of an earlier one."""
        path = f"{self.path}/plan.json"
        hide = redaction(None if redact is None else tuple(redact))
        # A run that is resumed began when it was run first.
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
            # Those with a secret must be given again when the run is resumed.
            "engine_options": {name: value for name, value in engine_options.items() if hide.text(value) == value},
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
        """The plan as it was stored. StoreError when it cannot be read."""
        path = f"{self.path}/plan.json"
        try:
            with open(path, encoding="utf-8") as file:
                plan: StoredPlan = json.load(file)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None
        except ValueError:
            raise StoreError(f"{path}: damaged. The jobs' figures are kept: `jobmeter ls` lists them.") from None
        if plan.get("schema") != SCHEMA:
            raise StoreError(f"{path}: written as {plan.get('schema')}, this version reads {SCHEMA}. Upgrade jobmeter.")
        return plan

    def claim(self) -> None:
        """Become the one who runs it, until this process ends. UsageError when someone else is."""
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
        """Say who runs it: we do, who claimed it. From now on it is the workflow that was run last."""
        assert self._lock is not None, "it was not claimed"
        me = json.dumps(Runner(os.getpid(), os.uname().nodename, _start_of(os.getpid()))._asdict()).encode()
        try:
            # In this order, so that a full disk costs no space that the file already has.
            os.pwrite(self._lock, me, 0)
            os.ftruncate(self._lock, len(me))
        except OSError as error:
            raise StoreError(f"{self.path}/runner.json: {error.strerror}") from None

    def remove(self) -> None:
        """Remove a run of which nothing was started."""
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
        """When whoever runs it, or ran it last, began: seconds since 1970, and 0 if nobody did."""
        try:
            return os.stat(f"{self.path}/runner.json").st_mtime
        except OSError:
            return 0.0

    def runner(self) -> Runner | None:
        """Who runs it, or ran it last."""
        try:
            with open(f"{self.path}/runner.json", encoding="utf-8") as file:
                return Runner(**json.load(file))
        except (OSError, ValueError, TypeError):
            return None


def _further(plan: Plan) -> dict[str, Any]:
    """What only some specs have."""
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
        make_store_directory(store, "journal")  # its permissions are those of all the rest
        access = make_store_directory(store, "workflows", workflow)
        run_id = max(_numbers(store, workflow), default=0) + 1
        while True:
            directory = RunDirectory(store, workflow, run_id)
            try:
                make_directory(directory.path, access)
                break
            except FileExistsError:
                run_id += 1  # someone was quicker
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
    """The runs of a workflow, in their order; one without a plan was killed before it began."""
    place = f"{store}/workflows/{workflow}"
    return [number for number in _numbers(store, workflow) if os.path.exists(f"{place}/{number}/plan.json")]


def _numbers(store: str, workflow: str) -> list[int]:
    with contextlib.suppress(OSError):
        return sorted(int(name) for name in os.listdir(f"{store}/workflows/{workflow}") if name.isdecimal())
    return []


def workflows(store: str) -> list[str]:
    """The workflows that were ever run, those whose newest run began last first."""
    names = []
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(f"{store}/workflows") if run_ids(store, name)]
    return sorted(names, key=lambda name: -RunDirectory(store, name, run_ids(store, name)[-1]).runner_began())


def all_runs(store: str) -> Iterator[RunDirectory]:
    for workflow in workflows(store):
        for run_id in reversed(run_ids(store, workflow)):
            yield RunDirectory(store, workflow, run_id)


def find_run(store: str, text: str | None, run_id: int | None = None) -> RunDirectory:
    """The run that is meant: of the workflow named by id, name, spec or `last`; its newest, or that of this number."""
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
    """Take the lock. OSError when someone keeps it: those who only look at it hold it for a moment."""
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
