"""The dependency graph of the jobs of a workflow. Pure: jobs in, numbers and lines out."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple

from jobmeter.workflow.plan import Job, Plan

_MOST_LISTED = 6  # names after `←` before the rest is counted


def dependants(jobs: Iterable[Job]) -> dict[int, list[int]]:
    """For each of these jobs, the numbers of the others that wait for it, in order."""
    jobs = list(jobs)
    following: dict[int, list[int]] = {job.number: [] for job in jobs}
    for job in jobs:
        for before in job.blocked_by:
            if before in following:
                following[before].append(job.number)
    return following


def order(jobs: Iterable[Job]) -> list[Job]:
    """The jobs in topological order: each comes after all it waits for. The order of the spec is kept if it is one."""
    jobs = sorted(jobs, key=lambda job: job.number)
    if all(not job.blocked_by or job.blocked_by[-1] < job.number for job in jobs):
        return jobs  # most specs are in such an order
    by_number = {job.number: job for job in jobs}
    numbers = TopologicalSorter({job.number: job.blocked_by for job in jobs}).static_order()
    return [by_number[number] for number in numbers if number in by_number]


def critical_path(jobs: Iterable[Job], seconds: Mapping[int, float]) -> list[int]:
    """The numbers of the jobs on the chain that took longest, first to last. Unknown seconds count as 0."""
    finished: dict[int, float] = {}
    came_from: dict[int, int | None] = {}
    for job in order(jobs):
        befores = [before for before in job.blocked_by if before in finished]
        last = max(befores, key=finished.__getitem__, default=None)
        came_from[job.number] = last
        finished[job.number] = (finished[last] if last is not None else 0.0) + seconds.get(job.number, 0.0)
    at = max(finished, key=finished.__getitem__, default=None)
    path = []
    while at is not None:
        path.append(at)
        at = came_from[at]
    return path[::-1]


class Step(NamedTuple):
    """A node of the graph: a job of the spec, a whole sweep, or files that jobs hand to each other."""

    name: str
    jobs: int
    level: int  # 0 waits for nothing
    after: tuple[str, ...]  # the steps it waits for
    files: tuple[str, ...] = ()  # paths; empty for jobs


def steps(jobs: Iterable[Job]) -> list[Step]:
    """The graph with sweeps collapsed, in the order of the spec."""
    jobs = list(jobs)
    step_of = {job.number: job.step for job in jobs}
    after: dict[str, dict[str, None]] = {}
    counts: dict[str, int] = {}
    levels: dict[str, int] = {}
    level: dict[int, int] = {}
    by_needs: dict[tuple[int, ...], tuple[int, list[str]]] = {}
    for job in order(jobs):
        # The jobs of a sweep often wait for the same jobs, and share one tuple.
        if job.blocked_by not in by_needs:
            depth = 1 + max((level[before] for before in job.blocked_by), default=-1)
            by_needs[job.blocked_by] = depth, list(dict.fromkeys(map(step_of.__getitem__, job.blocked_by)))
        level[job.number], befores = by_needs[job.blocked_by]
        levels[job.step] = max(levels.get(job.step, 0), level[job.number])
        counts[job.step] = counts.get(job.step, 0) + 1
        after.setdefault(job.step, {}).update(dict.fromkeys(befores))
    names = dict.fromkeys(job.step for job in jobs)
    return [Step(name, counts[name], levels[name], tuple(after[name])) for name in names]


def steps_with_files(plan: Plan) -> list[Step]:
    """The graph with files between the steps that make and read them; files of the same steps are one node."""
    jobs = steps(plan.jobs)
    levels = {step.name: step.level for step in jobs}
    makers: dict[str, str] = {}
    readers: dict[str, dict[str, None]] = {}
    for job in plan.jobs:
        makers.update(dict.fromkeys((*job.outputs, *map(_data_name, job.output_data)), job.step))
        for path in (*job.inputs, *map(_data_name, job.input_data)):
            readers.setdefault(path, {})[job.step] = None
    groups: dict[tuple[str | None, tuple[str, ...]], list[str]] = {}
    for path in dict.fromkeys((*readers, *makers)):
        groups.setdefault((makers.get(path), tuple(readers.get(path, ()))), []).append(path)
    between: list[Step] = []
    inputs: dict[str, list[str]] = {}
    replaced: set[tuple[str, str]] = set()
    for (maker, reading), paths in groups.items():
        level = 2 * levels[maker] + 2 if maker is not None else 2 * min(levels[step] for step in reading)
        name = _files_name(paths, os.path.dirname(plan.path), {*levels, *(step.name for step in between)})
        between.append(Step(name, 0, level, () if maker is None else (maker,), tuple(paths)))
        for step in reading:
            inputs.setdefault(step, []).append(name)
            replaced.add((maker or "", step))
    moved = [
        step._replace(
            level=2 * step.level + 1,
            after=(*inputs.get(step.name, ()), *(name for name in step.after if (name, step.name) not in replaced)),
        )
        for step in jobs
    ]
    ranks = {level: rank for rank, level in enumerate(sorted({step.level for step in (*moved, *between)}))}
    return [step._replace(level=ranks[step.level]) for step in (*moved, *between)]


def _data_name(name: str) -> str:
    return f"user data {name}"


def _files_name(paths: Sequence[str], directory: str, taken: Container[str]) -> str:
    """`model.pt`, or `model_1.pt … model_9.pt (9 files)`."""
    names = [os.path.relpath(path, directory) if os.path.isabs(path) else path for path in paths]
    name = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names):,} files)"
    while name in taken:
        name = f"./{name}"
    return name


def text_graph(plan: Plan, statuses: Mapping[str, str] = {}, *, files: bool = False) -> list[str]:
    """The graph as lines of text: level by level, each step with the steps it waits for; a sweep is one step.

    `statuses` maps a step to the statuses of its jobs, in words. With `files`, the files stand between the steps.
    """
    plan_steps = steps_with_files(plan) if files else steps(plan.jobs)
    jobs, edges = len(plan.jobs), sum(len(job.blocked_by) for job in plan.jobs)
    lines = [f"{plan.name}: {_plural(jobs, 'job')}, {_plural(edges, 'dependency', 'dependencies')}"]
    counts = {step.name: step.jobs for step in plan_steps}
    for level in sorted({step.level for step in plan_steps}):
        here = [step for step in plan_steps if step.level == level]
        rows = [
            [
                _label(step.name, step.jobs),
                *([statuses.get(step.name, "")] if statuses else []),
                f"← {_listed(step.after, counts)}" if step.after else "",
            ]
            for step in here
        ]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines += ["", f"level {level + 1}"]
        for row in rows:
            lines.append("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    return lines


def _label(name: str, count: int) -> str:
    return f"{name} × {count:,}" if count > 1 else name


def _listed(names: Sequence[str], counts: Mapping[str, int]) -> str:
    shown = [_label(name, counts[name]) for name in names[:_MOST_LISTED]]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest else "")


def _plural(count: int, word: str, words: str = "") -> str:
    return f"{count:,} {word if count == 1 else words or word + 's'}"
