"""What a history would have cost with other requests: today's, the largest so far, the 95th percentile, the advice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.analyse.check import job_of
from jobmeter.analyse.overuse import needed_cpus, used_amount
from jobmeter.analyse.resource import CPU, MEMORY, RUNTIME, Resource
from jobmeter.analyse.size.cost import CORE_HOUR, GB_HOUR
from jobmeter.analyse.size.cpus import sufficient_for
from jobmeter.analyse.size.need import Need
from jobmeter.analyse.size.observation import COMPLETE, Observation, observation
from jobmeter.analyse.size.policy import Policy
from jobmeter.analyse.size.replay import Advised, Largest, Method, Percentile, ReplayedTask, Requested, Step, replay
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.model import Status

TODAY, LARGEST, PERCENTILE, ADVICE = "today's requests", "largest so far", "95th percentile", "advice"
METHODS = (TODAY, LARGEST, PERCENTILE, ADVICE)


class Result(NamedTuple):
    """What one method of requesting would have cost; None: not known."""

    method: str
    gb_hours_wasted: float | None
    failed: int  # attempts that would have run out of memory
    core_hours_wasted: float | None
    hours_wasted: float | None  # hours of time limits that were not used
    timed_out: int


class Evaluation(NamedTuple):
    runs: int
    jobs: int
    results: list[Result]
    steps: dict[str, list[Step]]  # of memory, by method


def evaluate(rows: Sequence[StoredRun], policy: Policy = Policy()) -> Evaluation:  # noqa: B008
    """Replay the runs that completed; rows must be oldest first. Figures are taken as they are, without room."""
    completed = [row for row in rows if row.get("status") == Status.COMPLETED.value]
    memory = _replay_all(completed, MEMORY, policy)
    cpus = _core_hours(completed, policy.target)
    runtime = _replay_all(completed, RUNTIME, policy)
    results = [
        Result(
            method,
            _total(memory.get(method), GB_HOUR),
            sum(step.failed for step in memory.get(method, ())),
            cpus.get(method),
            _total(runtime.get(method), 3600.0),
            sum(step.failed for step in runtime.get(method, ())),
        )
        for method in METHODS
    ]
    return Evaluation(len(completed), len({job_of(row).step for row in completed}), results, memory)


def _total(steps: Sequence[Step] | None, unit: float) -> float | None:
    return sum(step.wasted for step in steps) / unit if steps else None


def _replay_all(rows: Sequence[StoredRun], resource: Resource, policy: Policy) -> dict[str, list[Step]]:
    tasks = [task for row in rows if (task := _task(row, resource)) is not None]
    methods: dict[str, Method] = {
        TODAY: Requested(),
        LARGEST: Largest(),
        PERCENTILE: Percentile(),
        ADVICE: Advised(policy.terms(resource)),
    }
    if any(task.need.requested is None for task in tasks):
        del methods[TODAY]  # a run that requested nothing wasted nothing: the sum would be too low
    return {name: replay(method, tasks) for name, method in methods.items()}


def _task(row: StoredRun, resource: Resource) -> ReplayedTask | None:
    observed: Observation | None = observation(row, resource, exactly=True)
    if observed is None or observed.ending != COMPLETE:
        return None
    seconds = observed.seconds if resource is MEMORY else 1.0
    return ReplayedTask(job_of(row).step, Need(observed.value, observed.features, seconds, row.get(resource.requested)))


def _core_hours(rows: Sequence[StoredRun], target: float) -> dict[str, float]:
    """Core-hours that were held and not used, by method. Too few CPUs make a run longer, but not fail."""
    past: dict[str, list[float]] = {}
    wasted = dict.fromkeys(METHODS, 0.0)
    measured = [row for row in rows if used_amount(row, CPU) is not None and row.get("wall_seconds")]
    for row in measured:
        needs = sorted(past.setdefault(job_of(row).step, []))
        requested = row.get(CPU.requested) or needed_cpus(row)
        used = row.get("cpu_mean_percent", used_amount(row, CPU) or 0.0) / 100
        requests = {
            TODAY: requested,
            LARGEST: needs[-1] if needs else requested,
            PERCENTILE: needs[int(0.95 * (len(needs) - 1))] if needs else requested,
            ADVICE: sufficient_for(needs, target) if needs else requested,
        }
        for method, cpus in requests.items():
            wasted[method] += max(cpus - used, 0.0) * row["wall_seconds"] / CORE_HOUR
        past[job_of(row).step].append(needed_cpus(row))
    if not all(row.get(CPU.requested) for row in measured):
        del wasted[TODAY]
    return wasted if measured else {}
