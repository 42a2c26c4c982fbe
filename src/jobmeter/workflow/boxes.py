"""The boxes of a workflow's graph: one for each step, with the statuses of its jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jobmeter.byte_text import to_text
from jobmeter.report.graph.drawing import Box
from jobmeter.workflow.graph import steps, steps_with_files
from jobmeter.workflow.plan import Job, Plan
from jobmeter.workflow.requirement_text import requirement_in_words

_MOST_LISTED = 20  # files in a tooltip


def step_boxes(plan: Plan, statuses: Mapping[int, str], *, files: bool = False) -> tuple[list[Box], list[str]]:
    """A box and a command for each step; for a sweep, the command of its first job as an example.

    `statuses` maps job numbers to statuses; it is empty for a workflow that was not run. With `files`, groups of files
    have boxes too.
    """
    by_step = _by_step(plan.jobs)
    counts = statuses_by_step(plan.jobs, statuses)
    boxes, commands = [], []
    for step in steps_with_files(plan) if files else steps(plan.jobs):
        if step.files:
            listed = "\n".join(map(to_text, step.files[:_MOST_LISTED]))
            boxes.append(Box(step.name, 1, step.level, step.after, "", listed))
            commands.append("")
            continue
        first = by_step[step.name][0]
        requirement = requirement_in_words(first.requirement)
        counted = counts.get(step.name, Counter())
        example = f"for example {first.name}:\n" if step.jobs > 1 else ""
        count = f"{step.jobs:,} jobs" if step.jobs > 1 else ""
        details = "\n".join(filter(None, (step.name, count, in_words(counted), requirement, example + first.script)))
        boxes.append(Box(step.name, step.jobs, step.level, step.after, requirement, details, counted))
        commands.append(first.script)
    return boxes, commands


def statuses_by_step(jobs: Sequence[Job], statuses: Mapping[int, str]) -> dict[str, Counter[str]]:
    """Step → the number of its jobs with each status; empty for a workflow that was not run."""
    if not statuses:
        return {}
    return {
        step: Counter(statuses[job.number] for job in mine if job.number in statuses)
        for step, mine in _by_step(jobs).items()
    }


def in_words(counted: Counter[str]) -> str:
    """`98 completed, 2 failed`."""
    return ", ".join(f"{number:,} {status}" for status, number in counted.items())


def _by_step(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    by_step: dict[str, list[Job]] = {}
    for job in jobs:
        by_step.setdefault(job.step, []).append(job)
    return by_step
