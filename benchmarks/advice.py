"""`python -m benchmarks.advice`: the time of an advice and an update with 1,000 runs, and of advice for 10,000 jobs."""

from __future__ import annotations

import random
import sys
import time
from math import exp
from statistics import median

from jobmeter.analyse.size.need import Need
from jobmeter.analyse.size.policy import Policy
from jobmeter.analyse.size.pool import Terms
from jobmeter.analyse.size.predictor import Pools, fit
from jobmeter.analyse.size.sizer import Sizer

RUNS = 1000
JOBS, RUNS_EACH = 10_000, 5
ADVICES = 300


def main() -> int:
    chance = random.Random(1996)
    sizer = Sizer()
    sizer.learn(_needs(chance, RUNS))
    advices, updates = [], []
    for need in _needs(chance, ADVICES):
        start = time.process_time()
        sizer.predict(need.features, Terms())
        advised = time.process_time()
        sizer.update(need)
        advices.append(1000 * (advised - start))
        updates.append(1000 * (time.process_time() - advised))
    print(f"advice with {RUNS:,} runs: median {median(advices):.2f} ms, at most {max(advices):.2f} ms of CPU")
    print(f"update: median {median(updates):.2f} ms, at most {max(updates):.2f} ms")
    rows = [[_row(number, chance) for _ in range(RUNS_EACH)] for number in range(JOBS)]
    start = time.process_time()
    pools = Pools()
    predictors = [fit(f"job{number}", each, Policy(), pools) for number, each in enumerate(rows)]
    pools.settle(Policy(), ())
    for predictor in predictors:
        predictor.predict()
    print(f"{JOBS:,} jobs of {RUNS_EACH} runs each: {time.process_time() - start:.1f} s")
    return 0


def _needs(chance: random.Random, count: int) -> list[Need]:
    sizes = [chance.uniform(1e6, 1e9) for _ in range(count)]
    return [Need((1e8 + 3 * size) * exp(chance.gauss(0, 0.05)), {"bytes": size}, 60.0) for size in sizes]


def _row(number: int, chance: random.Random) -> dict[str, object]:
    return {
        "id": "a", "name": f"job{number}", "status": "completed", "wall_seconds": chance.uniform(10, 20),
        "memory_peak_bytes": chance.uniform(1e8, 2e8), "memory_quality": "exact", "cpu_peak_percent": 90.0,
        "cpu_mean_percent": 80.0, "requirement_memory_bytes": 10**9,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
