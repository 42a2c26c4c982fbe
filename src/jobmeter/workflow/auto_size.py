"""`--auto-size`: a plan whose jobs request what is advised for them, by the runs of their steps and by their inputs."""

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
"""By how much a third attempt requests more, and those after it."""
LEAST_STEPS = 5
"""Steps that must have run, before what they needed says something of another."""
BYTES = "bytes"
"""The label for the size of the inputs."""


def sized_plan(plan: Plan, store: str, capacity: Capacity, warn: Callable[[str], None]) -> Plan:
    """The plan with advised requests; what runs out is tried again.

    A job without a past requests a share of its memory, once several other steps have run.
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
    """The size of the inputs as a label; nothing where it has none, or one is missing."""
    try:
        return {BYTES: str(sum(os.stat(path).st_size for path in job.inputs))} if job.inputs else {}
    except OSError:
        return {}


class _FirstShare(NamedTuple):
    """Of its memory, what a job without a past requests, and what where that is not enough."""

    share: float
    after: float


def _first_share(plan: Plan, predictors: Mapping[str, Predictor]) -> _FirstShare | None:
    """By what the steps that ran needed of what the spec requests for them; None: all of it."""
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
    failure = sum(each.needed * each.held for each in shares) / len(shares)
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
    """A job without a past, with a part of the memory that it requests, if it does."""
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
    """Memory as advised; CPUs and time only where the spec requests them, for a limit must be wanted."""
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
    """By as much more as is advised after a first attempt that was not enough."""
    from jobmeter.analyse.resource import MEMORY, RUNTIME

    memory, runtime = advice.amount(MEMORY), advice.amount(RUNTIME)
    if memory is not None:
        retry = retry._replace(memory_factor=predictor.retry(memory, 1) / memory.request)
    if runtime is not None:
        retry = retry._replace(runtime_factor=predictor.retry(runtime, 1) / runtime.request)
    return retry
