"""What a history would have cost with other requests, against histories of which the truth is known."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.resource import CPU
from jobmeter.analyse.size.evaluation import ADVICE, evaluate
from jobmeter.analyse.size.policy import Policy
from jobmeter.analyse.size.predictor import advise


def run(cpus: float) -> dict[str, Any]:
    """A run of an hour that keeps so many CPUs busy."""
    percent = {"cpu_peak_percent": 100.0 * cpus, "cpu_mean_percent": 100.0 * cpus}
    return {"id": "a", "name": "train", "status": "completed", "wall_seconds": 3600.0, **percent}


@pytest.mark.parametrize(("target", "advised"), [(0.9, 1.0), (0.98, 4.0)])
def test_core_hours_of_the_advice_are_those_of_the_cpus_that_size_advises_for_the_target(
    target: float, advised: float
) -> None:
    """One of ten runs needs 4 CPUs: if one of ten may wait for CPUs, one CPU is enough for the next run."""
    past = [*[run(1.0)] * 9, run(4.0)]
    amount = advise("train", past[::-1], Policy(target)).amount(CPU)
    assert amount is not None
    assert advised == amount.request
    results = {result.method: result for result in evaluate([*past, run(1.0)], Policy(target)).results}
    assert pytest.approx(advised - 1.0) == results[ADVICE].core_hours_wasted
