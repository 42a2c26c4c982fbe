"""What the jobs of one workflow share: it depends on their runs alone, not on what was requested of it before."""

from __future__ import annotations

import math
import random
from typing import Any

from jobmeter.analyse.resource import GPU_MEMORY, MEMORY
from jobmeter.analyse.size.policy import Policy
from jobmeter.analyse.size.pool import Terms
from jobmeter.analyse.size.predictor import Pools, Predictor, fit

GIB = 2**30
POLICY = Policy(below_peak=True)


def run(name: str, gigabytes: float, seconds: float = 60.0, **fields: Any) -> dict[str, Any]:
    usual = {"id": "a", "name": name, "status": "completed", "memory_quality": "exact"}
    return {**usual, "memory_peak_bytes": gigabytes * GIB, "wall_seconds": seconds, **fields}


def sweep_and_single_job() -> tuple[Predictor, Predictor]:
    """A sweep of large, long jobs, and a small, short job, sized together."""
    chance = random.Random(7)
    levels = {"train_1": 10.0, "train_2": 20.0, "train_3": 80.0}
    pools = Pools()
    sweep = [run(name, size * chance.uniform(1, 1.2), 9000.0) for _ in range(2) for name, size in levels.items()]
    single = [run("clean", math.exp(chance.gauss(0, 0.4))) for _ in range(30)]
    predictors = fit("train_{n}", sweep, POLICY, pools), fit("clean", single, POLICY, pools)
    pools.settle(POLICY, ())
    return predictors


def test_advice_on_a_sweep_does_not_depend_on_how_often_it_was_requested() -> None:
    sweep, _ = sweep_and_single_job()
    first = sweep.predict()
    for _ in range(998):
        sweep.predict()
    assert first == sweep.predict()


def test_advice_on_a_job_does_not_depend_on_whether_that_on_a_sweep_was_requested_before() -> None:
    (_, alone), (sweep, after) = sweep_and_single_job(), sweep_and_single_job()
    for _ in range(100):
        sweep.predict()
    assert alone.predict() == after.predict()


def failure_price(pools: Pools) -> float:
    return pools.of(MEMORY).price(Terms()).failure


def test_a_job_that_is_learned_again_for_a_new_version_counts_once_in_the_price_of_a_failure() -> None:
    other = [run("clean", 1.0)] * 5
    newer = [run("train", 2.0, labels={"version": "2"})] * 3
    older = [run("train", 80.0, 9000.0, labels={"version": "1"})] * 30
    updated, at_once = Pools(), Pools()
    fit("clean", other, POLICY, updated)
    fit("train", newer[:2] + older, POLICY, updated).update(newer[2])
    fit("clean", other, POLICY, at_once)
    fit("train", newer + older, POLICY, at_once)
    assert failure_price(at_once) == failure_price(updated)


def test_a_job_that_is_learned_again_for_its_first_gpu_memory_counts_once_in_the_price_of_a_failure() -> None:
    other = [run("clean", 1.0)] * 5
    rows = [run("train", 80.0, 9000.0, **{GPU_MEMORY.used: 2 * GIB}), *[run("train", 80.0, 9000.0)] * 4]
    updated, at_once = Pools(), Pools()
    fit("clean", other, POLICY, updated)
    fit("train", rows[1:], POLICY, updated).update(rows[0])
    fit("clean", other, POLICY, at_once)
    fit("train", rows, POLICY, at_once)
    assert failure_price(at_once) == failure_price(updated)
