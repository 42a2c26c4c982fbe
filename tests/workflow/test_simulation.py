from __future__ import annotations

import random

import pytest

from jobmeter.engines.contract import Capacity
from jobmeter.workflow.expected_usage import Use
from jobmeter.workflow.plan import Job
from jobmeter.workflow.simulation import Cluster, Level, simulate
from tests.workflow.jobs import a_job, a_sweep

GIB = 1 << 30


def taking(jobs: list[Job], seconds: float, **fields: float) -> dict[int, list[Use]]:
    return {job.number: [Use(seconds, **fields)] for job in jobs}


def test_a_sweep_goes_through_in_as_many_rounds_as_the_cpus_allow() -> None:
    jobs = a_sweep(1, 7, step="s", cpus=1)
    simulated = simulate(jobs, Cluster(1, Capacity(cpus=3)), taking(jobs, 10))
    assert (30, 3) == (simulated.seconds, simulated.jobs_peak)


def test_a_job_waits_for_those_it_needs() -> None:
    jobs = [a_job(1), a_job(2, 1), a_job(3, 1, 2)]
    assert 6 == simulate(jobs, Cluster(1, Capacity(cpus=8)), taking(jobs, 2)).seconds


def test_reserved_hours_are_requests_and_used_ones_what_the_runs_used() -> None:
    jobs = [a_job(1, cpus=4, memory_bytes=8 * GIB), a_job(2, cpus=2, memory_bytes=2 * GIB)]
    draws = {
        1: [Use(1800, cpu_seconds=3600, memory_peak_bytes=4 * GIB, memory_mean_bytes=2 * GIB)],
        2: [Use(3600, cpu_seconds=1800, memory_peak_bytes=2 * GIB, memory_mean_bytes=1 * GIB)],
    }
    simulated = simulate(jobs, Cluster(1, Capacity(cpus=8)), draws)
    assert (4.0, 6.0) == (simulated.core_hours, simulated.gb_hours)
    assert (1.5, 2.0) == (simulated.used_core_hours, simulated.used_gb_hours)
    assert 6 * GIB == simulated.memory_peak_bytes


def test_what_one_job_did_not_record_makes_the_sum_unknown() -> None:
    jobs = [a_job(1), a_job(2)]
    simulated = simulate(jobs, Cluster(1, Capacity(cpus=2)), {1: [Use(1, cpu_seconds=1.0)], 2: [Use(1)]})
    assert simulated.used_core_hours is None


def test_two_jobs_do_not_share_the_rest_of_two_nodes() -> None:
    """Three jobs of 3 CPUs fit 10 CPUs, but of two nodes with 5 each only two do."""
    jobs = a_sweep(1, 3, step="s", cpus=3)
    assert 20 == simulate(jobs, Cluster(2, Capacity(cpus=5)), taking(jobs, 10)).seconds
    assert 10 == simulate(jobs, Cluster(1, Capacity(cpus=10)), taking(jobs, 10)).seconds


def test_an_attempt_that_fails_occupies_its_place_and_is_tried_again() -> None:
    jobs = [a_job(1, cpus=1), a_job(2, cpus=1)]
    simulated = simulate(jobs, Cluster(1, Capacity(cpus=1)), {1: [Use(5), Use(7)], 2: [Use(2)]})
    assert (14, 3) == (simulated.seconds, simulated.attempts)
    assert 14 / 3600 == pytest.approx(simulated.core_hours)


def test_levels_show_what_is_occupied_from_each_change_on() -> None:
    jobs = [a_job(1, cpus=1), a_job(2, cpus=2)]
    draws = {1: [Use(1, memory_peak_bytes=10)], 2: [Use(3, memory_peak_bytes=5)]}
    simulated = simulate(jobs, Cluster(1, Capacity(cpus=3)), draws)
    assert [Level(0, 2, 3, 15), Level(1, 1, 2, 5), Level(3, 0, 0, 0)] == simulated.levels


def test_no_node_is_ever_over_committed_and_every_job_runs() -> None:
    chance = random.Random(5)
    for _ in range(50):
        jobs = [
            a_job(number, *chance.sample(range(1, number), min(number - 1, chance.randrange(3))),
                  cpus=chance.randint(1, 4), memory_bytes=chance.randint(1, 8) * GIB)
            for number in range(1, 41)
        ]  # fmt: skip
        draws = {job.number: [Use(chance.uniform(0.1, 9))] * chance.randint(1, 3) for job in jobs}
        cluster = Cluster(chance.randint(1, 4), Capacity(cpus=4, memory_bytes=8 * GIB))
        simulated = simulate(jobs, cluster, draws)
        assert simulated.attempts == sum(map(len, draws.values()))
        assert all(level.cpus <= 4 * cluster.nodes + 1e-9 for level in simulated.levels)
        longest = max(sum(use.seconds for use in uses) for uses in draws.values())
        work = sum((job.requirement.cpus or 0) * use.seconds for job in jobs for use in draws[job.number])
        assert simulated.seconds >= max(longest, work / (4 * cluster.nodes)) - 1e-9
