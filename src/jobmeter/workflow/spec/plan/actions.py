"""The commands of actions, as jobs of the plan: the trigger determines what they wait for, and what waits for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jobmeter.model import Requirement
from jobmeter.workflow.plan import Job, Retry
from jobmeter.workflow.spec.plan.command import Programs, shell_command
from jobmeter.workflow.spec.plan.expansion import at
from jobmeter.workflow.spec.plan.name_index import NameIndex
from jobmeter.workflow.spec.plan.parameters import Filler
from jobmeter.workflow.spec.read.schema import ActionSpec
from jobmeter.workflow.spec.read.spec_errors import Path, Problem

_START, _COMPLETE, _READY = "on_workflow_start", "on_workflow_complete", "on_jobs_ready"


class ActionContext(NamedTuple):
    """Where the commands of actions run."""

    directory: str
    environment: dict[str, str]
    variables: dict[str, str]
    programs: Programs


def with_actions(
    actions: Sequence[ActionSpec],
    jobs: list[Job],
    index: NameIndex,
    context: ActionContext,
    report: Callable[[Problem, Path], None],
) -> list[Job]:
    """The jobs, and after them a job for each command of an action; each command waits for the one before it.

    - `on_workflow_start`: every job waits for it.
    - `on_jobs_ready`: it waits for what its jobs wait for, and they wait for it (except those that it waits for).
    - `on_jobs_complete`: it waits until its jobs have ended, however they ended; nothing waits for it.
    - `on_workflow_complete`: it waits for everything else.

    An action that fails is reported, and what waits for it goes on.
    """
    planner = _Planner(jobs, index, context)
    order = sorted(range(len(actions)), key=lambda position: _order(actions[position]))
    for position in order:
        action = actions[position]
        try:
            targets = planner.targets(action)
            if action.action_type == "run_commands":
                planner.add(position, action, targets)
        except Problem as problem:
            report(problem, ("actions", position))
    return planner.jobs()


def _order(action: ActionSpec) -> int:
    """The order of planning: an action that waits for nothing first, one that waits for everything last."""
    return {_START: 0, _COMPLETE: 2}.get(action.trigger_type, 1)


class _Planner:
    def __init__(self, jobs: list[Job], index: NameIndex, context: ActionContext) -> None:
        self._jobs = {job.number: job for job in jobs}
        self._of_spec = [job.number for job in jobs]
        self._names = {job.name for job in jobs}
        self._index = index
        self._context = context
        self._filler = Filler(list(context.variables))
        self._last_of_start: int | None = None

    def jobs(self) -> list[Job]:
        return list(self._jobs.values())

    def targets(self, action: ActionSpec) -> list[int]:
        """The jobs that an action names. Raises Problem if one of its references matches no job."""
        numbers: set[int] = set()
        for position, name in enumerate(action.jobs):
            numbers.update(at(("jobs", position), self._index.numbers, name))
        for position, regex in enumerate(action.job_name_regexes):
            numbers.update(at(("job_name_regexes", position), self._index.matching, regex))
        return sorted(numbers)

    def add(self, position: int, action: ActionSpec, targets: list[int]) -> None:
        trigger = action.trigger_type
        before = self._before(trigger, targets)
        held: list[int] = []
        if trigger == _START:
            held = [number for number in self._of_spec if not self._jobs[number].blocked_by]
        elif trigger == _READY:
            earlier = self._ancestors(before)
            held = [number for number in targets if number not in earlier]
        # `on_jobs_ready` does not happen for jobs that are blocked; other actions run however the jobs ended.
        after_failure = trigger != _READY or all(self._jobs[number].runs_after_failure for number in targets)
        last = self._add_commands(position, action, before, after_failure)
        self._hold(held, last)
        if trigger == _START:
            self._last_of_start = last

    def _before(self, trigger: str, targets: list[int]) -> set[int]:
        if trigger == _START:
            return set() if self._last_of_start is None else {self._last_of_start}
        if trigger == _COMPLETE:
            return set(self._jobs)
        if trigger == _READY:
            return {before for number in targets for before in self._jobs[number].blocked_by}
        return set(targets)

    def _ancestors(self, numbers: set[int]) -> set[int]:
        reached, rest = set(numbers), list(numbers)
        while rest:
            for before in self._jobs[rest.pop()].blocked_by:
                if before not in reached:
                    reached.add(before)
                    rest.append(before)
        return reached

    def _add_commands(self, position: int, action: ActionSpec, before: set[int], after_failure: bool) -> int:
        """Add a job for each command; return the number of the last one."""
        step = action.name or f"{action.trigger_type}_{position + 1}"
        last = 0
        for order, text in enumerate(action.commands):
            name = step if len(action.commands) == 1 else f"{step}.{order + 1}"
            while name in self._names:
                name = f"{name}_"
            self._names.add(name)
            last = max(self._jobs, default=0) + 1
            command = at(("commands", order), self._command, text)
            self._jobs[last] = self._job(last, name, step, command, before, after_failure)
            before = {last}
        return last

    def _command(self, text: str) -> tuple[list[str], str]:
        script = self._filler.fill(text, self._context.variables)
        words = shell_command(script, True, self._context.directory, self._context.environment, self._context.programs)
        return words, script.strip("\n")

    def _job(
        self, number: int, name: str, step: str, command: tuple[list[str], str], before: set[int], after_failure: bool
    ) -> Job:
        return Job(
            number=number,
            name=name,
            step=step,
            command=command[0],
            script=command[1],
            directory=self._context.directory,
            environment=self._context.environment,
            requirement=Requirement(),
            gpus=0,
            requirement_name=None,
            blocked_by=tuple(sorted(before)),
            inputs=(),
            outputs=(),
            retry=Retry(),
            priority=0,
            labels={},
            container=None,
            runs_after_failure=after_failure,
            is_action=True,
        )

    def _hold(self, numbers: list[int], action: int) -> None:
        """Make jobs wait for an action. Those that shared a `blocked_by` tuple still do: it is walked only once."""
        longer: dict[tuple[int, ...], tuple[int, ...]] = {}
        for number in numbers:
            job = self._jobs[number]
            blocked_by = longer.setdefault(job.blocked_by, (*job.blocked_by, action))
            self._jobs[number] = job._replace(blocked_by=blocked_by)
