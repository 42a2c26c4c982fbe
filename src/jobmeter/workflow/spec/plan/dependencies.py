"""What each job waits for: the jobs it names, and those that make the files it reads."""

from __future__ import annotations

import fnmatch
import re
from bisect import bisect_left
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from jobmeter.errors import quote
from jobmeter.suggestion import suggest
from jobmeter.workflow.spec.read.spec_errors import Problem

MOST_EDGES = 10_000_000
_WILD = re.compile(r"[*?\[]")
_MOST_NAMED = 8  # jobs of a cycle that a message names


class Neighbours:
    """Knows the jobs of a workflow by name, by pattern, by step and by what they make; numbers are from 1."""

    def __init__(self, names: Sequence[str], steps: Sequence[str]) -> None:
        self._names = names
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._steps: dict[str, list[int]] = {}
        for number, step in enumerate(steps, 1):
            self._steps.setdefault(step, []).append(number)
        self._makers: dict[str, int] = {}
        self._sorted: list[str] | None = None
        self._resolved: dict[str, tuple[int, ...]] = {}
        self._edges = 0

    def add_outputs(self, number: int, outputs: Sequence[str]) -> None:
        """Problem when one of these files is made by another job too."""
        for output in outputs:
            other = self._makers.setdefault(output, number)
            if other != number:
                raise Problem(f"{quote(output)} is already an output of job {quote(self._names[other - 1])}")

    def waits_for(self, number: int, names: Sequence[str], inputs: Sequence[str]) -> tuple[int, ...]:
        """The numbers of the jobs that come before the job `number`, in order and without repetition.

        Problem, with the position of the name, when there is no such job.
        """
        if len(names) == 1 and not inputs:
            # Most often; and of a sweep that waits for a sweep, all jobs then share one tuple.
            numbers = self._without(number, names[0])
        else:
            together = {self._makers[path] for path in inputs if path in self._makers}
            for position, name in enumerate(names):
                try:
                    together.update(self._without(number, name))
                except Problem as problem:
                    problem.path = (position,)
                    raise
            numbers = tuple(sorted(together))
        self._edges += len(numbers)
        if self._edges > MOST_EDGES:
            raise Problem(
                f"together the jobs wait for each other over {MOST_EDGES:,} times. "
                "Put a job between the two sweeps that waits for all of the first."
            )
        return numbers

    def _without(self, number: int, name: str) -> tuple[int, ...]:
        """What `name` means to a job: not itself, when it means several."""
        numbers = self._resolved.get(name)
        if numbers is None:
            numbers = self._resolved[name] = self._meaning(name)
        if len(numbers) > 1 and numbers[bisect_left(numbers, number) % len(numbers)] == number:
            return tuple(other for other in numbers if other != number)
        return numbers

    def _meaning(self, name: str) -> tuple[int, ...]:
        if name in self._numbers:
            return (self._numbers[name],)
        if name in self._steps:
            return tuple(self._steps[name])
        wild = _WILD.search(name)
        if wild is None:
            raise Problem(f"there is no job {quote(name)}. {suggest(name, [*self._numbers, *self._steps])}")
        matching = self._matching(name, name[: wild.start()])
        if not matching:
            raise Problem(f"no job's name matches {quote(name)}. {suggest(name, [*self._numbers, *self._steps])}")
        return matching

    def _matching(self, pattern: str, beginning: str) -> tuple[int, ...]:
        """The jobs whose names match; only names with the same beginning are compared."""
        if self._sorted is None:
            self._sorted = sorted(self._names)
        matches = re.compile(fnmatch.translate(pattern)).match
        numbers = []
        for position in range(bisect_left(self._sorted, beginning), len(self._sorted)):
            name = self._sorted[position]
            if not name.startswith(beginning):
                break
            if matches(name):
                numbers.append(self._numbers[name])
        return tuple(sorted(numbers))


def find_cycle(blocked_by: Sequence[tuple[int, ...]]) -> list[int]:
    """The numbers of jobs that wait for each other, each for the one before it; the first is also the last.

    Empty when there is no such circle. `blocked_by` has at position n - 1 what job n waits for, ascending.
    """
    if all(not before or before[-1] < number for number, before in enumerate(blocked_by, 1)):
        return []  # as most people write them: each waits for earlier ones alone
    try:
        TopologicalSorter(dict(enumerate(blocked_by, 1))).prepare()
    except CycleError as error:
        cycle: list[int] = error.args[1]
        return cycle
    return []


def cycle_text(names: Sequence[str]) -> str:
    """`a → b → a`, in the order in which the jobs would run; of a long circle only the beginning."""
    if len(names) > _MOST_NAMED + 1:
        names = [*names[: _MOST_NAMED - 1], "…", names[-1]]
    return " → ".join(names)
