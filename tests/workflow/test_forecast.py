from __future__ import annotations

from jobmeter.engines.contract import Capacity
from jobmeter.workflow.forecast import Forecast, forecast
from tests.workflow.jobs import a_job, a_sweep


def test_a_sweep_goes_through_as_many_at_a_time_as_fit() -> None:
    jobs = a_sweep(1, 10, step="train", cpus=1, runtime_seconds=60.0)
    assert Forecast(4, 180.0, 0) == forecast(jobs, Capacity(4.0, None))


def test_memory_bounds_it_too() -> None:
    jobs = a_sweep(1, 4, step="train", memory_bytes=6, runtime_seconds=60.0)
    assert Forecast(1, 240.0, 0) == forecast(jobs, Capacity(8.0, 11))


def test_a_chain_takes_the_sum() -> None:
    jobs = [a_job(1, runtime_seconds=10.0), a_job(2, 1, runtime_seconds=5.0)]
    assert Forecast(1, 15.0, 0) == forecast(jobs, Capacity(8.0, None))


def test_the_time_is_not_known_when_one_job_does_not_say() -> None:
    jobs = [a_job(1, runtime_seconds=10.0), a_job(2)]
    assert Forecast(2, None, 1) == forecast(jobs, Capacity(8.0, None))
