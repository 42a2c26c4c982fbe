from __future__ import annotations

from jobmeter.engines.contract import Capacity
from jobmeter.workflow.budget import forecast_usage, longest_chain, smallest_cluster
from jobmeter.workflow.expected_usage import Expected, Use
from jobmeter.workflow.plan import Job
from jobmeter.workflow.simulation import Cluster
from tests.workflow.jobs import a_job, a_sweep


def expected_of(jobs: list[Job], seconds: float, spread: float = 0.0) -> dict[int, Expected]:
    return {job.number: Expected([Use(seconds)], [], spread) for job in jobs}


def test_without_variation_the_range_is_one_number() -> None:
    jobs = a_sweep(1, 10, step="s", cpus=1)
    forecast = forecast_usage(jobs, Cluster(1, Capacity(cpus=2)), expected_of(jobs, 60))
    assert (300, 300, 300) == forecast.ranges["wall_seconds"]
    assert (10 / 60,) * 3 == forecast.ranges["core_hours"]
    assert "core_hours_used" not in forecast.ranges


def test_ranges_hold_what_is_drawn_anew() -> None:
    """The sum of 100 lognormal times, whose deviation is known: 90 % of the simulations are within 1.64 of it."""
    jobs = a_sweep(1, 100, step="s", cpus=1)
    forecast = forecast_usage(jobs, Cluster(1, Capacity(cpus=1)), expected_of(jobs, 10, spread=0.2))
    expected, low, high = forecast.ranges["wall_seconds"]
    mean, deviation = 1000 * 1.0202, 10 * 2.06  # of a lognormal with 0.2
    assert abs(expected - mean) < 0.4 * deviation
    assert 2 * 1.645 * deviation * 0.7 < high - low < 2 * 1.645 * deviation * 1.3


def test_the_same_history_gives_the_same_forecast() -> None:
    jobs = a_sweep(1, 30, step="s")
    cluster = Cluster(2, Capacity(cpus=4))
    assert forecast_usage(jobs, cluster, expected_of(jobs, 9, 0.3)) == forecast_usage(
        jobs, cluster, expected_of(jobs, 9, 0.3)
    )


def test_the_smallest_cluster_is_the_fewest_nodes_that_meet_the_deadline() -> None:
    jobs = a_sweep(1, 40, step="s", cpus=1)
    for nodes, seconds in ((1, 100), (2, 50), (4, 30), (10, 10)):  # 4 at a time on each, 10 s each
        best = smallest_cluster(jobs, Cluster(1, Capacity(cpus=4)), expected_of(jobs, 10), seconds)
        assert best is not None
        assert (nodes, True) == (best.cluster.nodes, best.ranges["wall_seconds"].high <= seconds)


def test_no_cluster_is_faster_than_the_longest_chain() -> None:
    jobs = [a_job(1), a_job(2, 1), a_job(3)]
    assert ([1, 2], 20) == longest_chain(jobs, expected_of(jobs, 10))
    assert smallest_cluster(jobs, Cluster(1, Capacity(cpus=1)), expected_of(jobs, 10), 19) is None


def test_jobs_that_fill_half_a_node_each_are_not_split_over_nodes() -> None:
    jobs = a_sweep(1, 6, step="s", cpus=3)
    best = smallest_cluster(jobs, Cluster(1, Capacity(cpus=5)), expected_of(jobs, 10), 10)
    assert best is not None
    assert 6 == best.cluster.nodes  # 18 CPUs, which 4 nodes have together
