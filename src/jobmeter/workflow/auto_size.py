"""`--auto-size`: a plan whose jobs request what is advised, by the runs of their steps and the size of their inputs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.engines.contract import Capacity
from jobmeter.model import Requirement, workflow_id
from jobmeter.workflow.plan import Job, Plan, Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jobmeter.analyse.size.advice import Advice
    from jobmeter.analyse.size.predictor import Predictor

RETRIES = 5
LATER_FACTOR = 2.0
"""The third attempt, and each one after it, requests this many times as much as the attempt before."""
LEAST_STEPS = 5
"""How many steps must have completed runs before their needs are used to size a step without runs."""
BYTES = "bytes"
"""The label for the size of the inputs."""


def sized_plan(plan: Plan, store: str, capacity: Capacity, warn: Callable[[str], None]) -> Plan:
    """The plan with advised requests; a job that runs out of memory or time is tried again.

    A job whose step has no stored runs requests a share of its memory request, once `LEAST_STEPS` other steps have run.
    """
    from jobmeter.analyse.size.policy import Policy
    from jobmeter.store import open_store
    from jobmeter.store.query.advice import fit_histories
    from jobmeter.store.query.history import workflow_histories

    histories = list(workflow_histories(open_store(store, warn), workflow_id(plan.name)))
    predictors = fit_histories(histories, Policy(), None)
    by_step = {history.name: predictor for history, predictor in zip(histories, predictors)}
    first = _first_share(plan, by_step)
    return plan._replace(jobs=[_sized(job, by_step.get(job.step), first, capacity) for job in plan.jobs])


def input_labels(job: Job) -> dict[str, str]:
    """The size of all inputs as a label; empty if the job has no inputs, or one is missing."""
    try:
        return {BYTES: str(sum(os.stat(path).st_size for path in job.inputs))} if job.inputs else {}
    except OSError:
        return {}


class _FirstShare(NamedTuple):
    """The shares of its memory request that a job without stored runs requests: first, and if that is not enough."""

    share: float
    after: float


def _first_share(plan: Plan, predictors: Mapping[str, Predictor]) -> _FirstShare | None:
    """The shares, chosen by what the steps with runs needed of their requests. None: a job requests all of it."""
    from jobmeter.analyse.resource import MEMORY, RUNTIME
    from jobmeter.analyse.size.shares import Share, choose_share

    shares = []
    requested = {job.step: job.requirement.memory_bytes for job in plan.jobs}
    for step, predictor in predictors.items():
        advice = predictor.predict()
        memory, runtime, request = advice.amount(MEMORY), advice.amount(RUNTIME), requested.get(step)
        if advice.completed and memory is not None and runtime is not None and request:
            shares.append(Share(memory.most / request, request * runtime.usual))
    if len(shares) < LEAST_STEPS:
        return None
    failure = sum(each.needed * each.requested_cost for each in shares) / len(shares)
    share = choose_share(shares, failure)
    return _FirstShare(share, choose_share(shares, failure, share)) if share < 1 else None


def _sized(job: Job, predictor: Predictor | None, first: _FirstShare | None, capacity: Capacity) -> Job:
    if job.is_action:
        return job
    retry = job.retry._replace(times=max(job.retry.times, RETRIES), later_factor=LATER_FACTOR)
    if predictor is None:
        return _sized_first(job._replace(retry=retry), first)
    from jobmeter.analyse.size.observation import features_of

    advice = predictor.predict(features_of({"labels": {**job.labels, **input_labels(job)}}))
    if not advice.completed:
        return job._replace(retry=retry)
    return job._replace(
        requirement=_requirement(job.requirement, advice, capacity), retry=_growing(retry, predictor, advice)
    )


def _sized_first(job: Job, first: _FirstShare | None) -> Job:
    """A job without stored runs, with a share of its memory request; unchanged if it requests no memory."""
    memory = job.requirement.memory_bytes
    if first is None or memory is None:
        return job
    from jobmeter.analyse.rounding import round_memory

    part = min(int(round_memory(memory * first.share)), memory)
    return job._replace(
        requirement=job.requirement._replace(memory_bytes=part),
        retry=job.retry._replace(memory_factor=first.after * memory / part),
    )


def _requirement(requested: Requirement, advice: Advice, capacity: Capacity) -> Requirement:
    """Memory as advised; CPUs and runtime only where the spec requests them: the user must choose to have a limit."""
    advised, most = advice.requirement(), capacity.most()
    if advised.memory_bytes is not None:
        bound = advised.memory_bytes if most.memory_bytes is None else most.memory_bytes
        requested = requested._replace(memory_bytes=min(advised.memory_bytes, bound))
    if requested.cpus is not None and advised.cpus is not None:
        requested = requested._replace(cpus=min(advised.cpus, advised.cpus if most.cpus is None else most.cpus))
    if requested.runtime_seconds is not None and advised.runtime_seconds is not None:
        requested = requested._replace(runtime_seconds=advised.runtime_seconds)
    return requested


def _growing(retry: Retry, predictor: Predictor, advice: Advice) -> Retry:
    """The retry policy, with the advised increase after a first attempt whose request was not enough."""
    from jobmeter.analyse.resource import MEMORY, RUNTIME

    memory, runtime = advice.amount(MEMORY), advice.amount(RUNTIME)
    if memory is not None:
        retry = retry._replace(memory_factor=predictor.retry(memory, 1) / memory.request)
    if runtime is not None:
        retry = retry._replace(runtime_factor=predictor.retry(runtime, 1) / runtime.request)
    return retry
