"""Tasks of a killed runner, which the engine may still have when its workflow is resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jobmeter.engines.contract import Engine, LeftTask
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.plan import Job
from jobmeter.workflow.resume import fingerprint
from jobmeter.workflow.task_log import StartedTask


class LeftTasks:
    """The tasks of a killed runner that were started on the engine that is used now."""

    def __init__(self, tasks: Sequence[StartedTask], engine: str, before: Sequence[Attempt]) -> None:
        """`engine` is the name of the engine, `before` are the attempts of earlier runners."""
        self._tasks = {task.number: task for task in tasks if task.engine == engine}
        self._runs = {(attempt.number, attempt.attempt): attempt.run for attempt in before}

    def recover(
        self, engine: Engine, wanted: Callable[[StartedTask], bool], warn: Callable[[str], None]
    ) -> list[StartedTask]:
        """Have the engine end the tasks that are not wanted and adopt the others; return those it adopted."""
        if not self._tasks:
            return []
        recovered = engine.recover(
            [LeftTask(each.number, each.attempt, each.token, wanted(each)) for each in self._tasks.values()]
        )
        if recovered.ended:
            jobs = f"{recovered.ended} job{'s' * (recovered.ended > 1)}"
            warn(f"ended what was left of {jobs} whose runner was killed")
        return [self._tasks[number] for number in recovered.adopted]

    def remove_run(self, task: StartedTask, store: str, warn: Callable[[str], None]) -> None:
        """Remove from the store what the killed runner wrote of an adopted task: its engine reports all of it again."""
        if (run := self._runs.get((task.number, task.attempt))) is not None:
            from jobmeter.store import open_store

            open_store(store, warn).remove(run)


def is_wanted(task: StartedTask, job: Job | None, done: frozenset[int]) -> bool:
    """Whether the result of a task is still of use: its job is not done, has not changed, and all it needs is done."""
    if job is None or job.number in done:
        return False
    return done.issuperset(job.blocked_by) and task.fingerprint == fingerprint(job)
