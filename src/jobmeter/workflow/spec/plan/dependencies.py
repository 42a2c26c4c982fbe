"""What each job waits for: the jobs it names, and those that make the files and the data it reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from jobmeter.errors import quote
from jobmeter.workflow.spec.plan.name_index import NameIndex
from jobmeter.workflow.spec.read.spec_errors import Problem

MOST_EDGES = 10_000_000
_MOST_NAMED = 8  # jobs of a cycle that a message names


class References(NamedTuple):
    """What a job waits for, as it is written in the spec."""

    names: tuple[str, ...] = ()  # names, patterns and names of sweeps
    regexes: tuple[str, ...] = ()


class Neighbours:
    """Finds the jobs of a workflow by name, by pattern, by step and by what they make; jobs are numbered from 1."""

    def __init__(self, names: Sequence[str], steps: Sequence[str], unknown: Sequence[str] = ()) -> None:
        """`unknown` are the names of entries that could not be expanded."""
        self.index = NameIndex("job", names, steps, unknown)
        self._names = names
        self._makers: dict[str, int] = {}
        self._edges = 0

    def add_outputs(self, number: int, outputs: Sequence[str]) -> None:
        """Register the outputs of a job. Raises Problem if another job makes one of them too."""
        for output in outputs:
            other = self._makers.setdefault(output, number)
            if other != number:
                raise Problem(f"{quote(output)} is already an output of job {quote(self._names[other - 1])}")

    def waits_for(self, number: int, references: References, inputs: Sequence[str]) -> tuple[int, ...]:
        """The numbers of the jobs that come before the job `number`, in order and without repetition.

        Raises Problem, with the position of the name, if there is no such job.
        """
        names, regexes = references
        if len(names) == 1 and not regexes and not inputs:
            # The usual case. If a sweep waits for another sweep, all its jobs share one tuple.
            numbers = self._without(number, self.index.numbers(names[0]))
        else:
            together = {self._makers[path] for path in inputs if path in self._makers}
            for position, name in enumerate(names):
                try:
                    together.update(self._without(number, self.index.numbers(name)))
                except Problem as problem:
                    problem.path = (position,)
                    raise
            for position, regex in enumerate(regexes):
                try:
                    together.update(self._others_matching(number, regex))
                except Problem as problem:
                    problem.path = ("depends_on_regexes", position)
                    raise
            numbers = tuple(sorted(together))
        self._edges += len(numbers)
        if self._edges > MOST_EDGES:
            raise Problem(
                f"together the jobs wait for each other over {MOST_EDGES:,} times. "
                "Put a job between the two sweeps that waits for all of the first."
            )
        return numbers

    def _others_matching(self, number: int, regex: str) -> tuple[int, ...]:
        numbers = self.index.matching(regex)
        if numbers == (number,):
            raise Problem(f"only the job itself matches {quote(regex)}")
        return self._without(number, numbers)

    def _without(self, number: int, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """What a reference means to a job: if it means several jobs, all of them but itself."""
        if len(numbers) > 1 and numbers[bisect_left(numbers, number) % len(numbers)] == number:
            return tuple(other for other in numbers if other != number)
        return numbers


def find_cycle(blocked_by: Sequence[tuple[int, ...]]) -> list[int]:
    """The numbers of jobs that wait for each other, each for the one before it; the first is also the last.

    Empty if there is no cycle. `blocked_by` has at position n - 1 what job n waits for, ascending.
    """
    if all(not before or before[-1] < number for number, before in enumerate(blocked_by, 1)):
        return []  # as in most specs, each job waits only for earlier ones
    try:
        TopologicalSorter(dict(enumerate(blocked_by, 1))).prepare()
    except CycleError as error:
        cycle: list[int] = error.args[1]
        return cycle
    return []


def cycle_text(names: Sequence[str]) -> str:
    """`a → b → a`, in the order in which the jobs would run; of a long cycle only the beginning."""
    if len(names) > _MOST_NAMED + 1:
        names = [*names[: _MOST_NAMED - 1], "…", names[-1]]
    return " → ".join(names)
