"""What each job of a plan is expected to use, from the stored runs of its step. Pure: rows in, draws out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from jobmeter.analyse.stored_run import StoredRun
from jobmeter.model import Status
from jobmeter.workflow.plan import Job

_USUAL_SPREAD = 0.1
"""The standard deviation of the logarithm of a runtime that is assumed where no job ran twice."""


class Use(NamedTuple):
    """What one attempt uses. None: not known."""

    seconds: float
    cpu_seconds: float | None = None
    memory_peak_bytes: float | None = None
    memory_mean_bytes: float | None = None

    def longer(self, factor: float) -> Use:
        """The same use with its runtime and CPU time multiplied by `factor`."""
        cpu = None if self.cpu_seconds is None else self.cpu_seconds * factor
        return self._replace(seconds=self.seconds * factor, cpu_seconds=cpu)


class Expected(NamedTuple):
    """What is expected of one job."""

    completed: list[Use]  # completed attempts, from which one is drawn
    failed: list[Use]  # attempts after which the job is tried again
    spread: float  # standard deviation of the logarithm of the runtime, beyond that among the attempts
    assumption: str | None = None  # what is assumed, in words, if no run is stored

    def draw(self, chance: Random, retries: int) -> list[Use]:
        """Draw the attempts at the job in one simulation; the last one completes."""
        attempts: list[Use] = []
        share = len(self.failed) / (len(self.failed) + len(self.completed))
        while len(attempts) < retries and chance.random() < share:
            attempts.append(chance.choice(self.failed))
        use = chance.choice(self.completed)
        return [*attempts, use.longer(math.exp(chance.gauss(0.0, self.spread))) if self.spread else use]


def expected_usage(
    jobs: Sequence[Job], histories: Mapping[str, Sequence[StoredRun]], assumed_seconds: float | None
) -> dict[int, Expected]:
    """The expected use of each job, by its number; `histories` are the stored runs of each step.

    If no job of its step ever completed, a job takes the runtime it requests, else `assumed_seconds`, else the median
    of all completed jobs of this workflow. A job for which none of these is known is absent.
    """
    by_name = {step: _by_name(rows) for step, rows in histories.items()}
    spread = _spread(by_name.values())
    run_seconds = [use.seconds for rows in histories.values() for use in _uses(rows, completed=True)]
    usual = statistics.median(run_seconds) if run_seconds else None
    expected = {}
    for job in jobs:
        rows: Sequence[StoredRun] = by_name.get(job.step, {}).get(job.name, [])
        if not _uses(rows, completed=True):
            rows = histories.get(job.step, ())  # all runs of its step, also with other parameters
        completed = _uses(rows, completed=True)
        if completed:
            failed = _uses((row for row in rows if _is_retried(job, row)), completed=False)
            expected[job.number] = Expected(completed, failed, spread / math.sqrt(len(completed)))
        elif (assumption := _assumption(job, assumed_seconds, usual)) is not None:
            expected[job.number] = assumption
    return expected


def _by_name(rows: Iterable[StoredRun]) -> dict[str, list[StoredRun]]:
    named: dict[str, list[StoredRun]] = {}
    for row in rows:
        named.setdefault(row["name"], []).append(row)
    return named


def _uses(rows: Iterable[StoredRun], *, completed: bool) -> list[Use]:
    return [
        Use(row["wall_seconds"], row.get("cpu_seconds"), row.get("memory_peak_bytes"), row.get("memory_mean_bytes"))
        for row in rows
        if (row["status"] == Status.COMPLETED.value) is completed and row.get("wall_seconds") is not None
    ]


def _is_retried(job: Job, row: StoredRun) -> bool:
    return row["status"] in job.retry.on or row.get("exit_code") in job.retry.exit_codes


def _spread(steps: Iterable[Mapping[str, Sequence[StoredRun]]]) -> float:
    """How much the runtimes of one job usually differ: the median of the standard deviations of their logarithms."""
    deviations = []
    for jobs in steps:
        for rows in jobs.values():
            logarithms = [math.log(use.seconds) for use in _uses(rows, completed=True) if use.seconds > 0]
            if len(logarithms) > 1:
                deviations.append(statistics.stdev(logarithms))
    return statistics.median(deviations) if deviations else _USUAL_SPREAD


def _assumption(job: Job, assumed_seconds: float | None, usual: float | None) -> Expected | None:
    memory = job.requirement.memory_bytes
    if (requested := job.requirement.runtime_seconds) is not None:
        return Expected([Use(requested, memory_peak_bytes=memory)], [], 0.0, "the runtime it requests")
    if assumed_seconds is not None:
        return Expected([Use(assumed_seconds, memory_peak_bytes=memory)], [], 0.0, "the runtime of --assume")
    if usual is not None:
        return Expected([Use(usual, memory_peak_bytes=memory)], [], _USUAL_SPREAD, "the median of the other jobs")
    return None
