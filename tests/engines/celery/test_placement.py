from __future__ import annotations

from jobmeter.engines.celery.placement import (
    Need,
    WorkerState,
    can_run,
    choose,
    free_amounts,
    need_of,
    worker_to_hold,
    worker_to_wait_at,
)
from jobmeter.model import Requirement
from tests.engines.celery.worker_states import worker


def free(*workers: WorkerState) -> dict[str, dict[str, float]]:
    return {each.name: dict(each.free) for each in workers}


ONE = need_of(Requirement(), None)


def test_a_job_that_requests_nothing_counts_as_one_cpu() -> None:
    assert Need({"cpus": 1.0}) == ONE
    assert Need({"cpus": 0.5, "memory_bytes": 7}, "docker") == need_of(Requirement(0.5, 7), {"engine": "docker"})


def test_a_job_goes_where_the_largest_share_stays_free() -> None:
    small, large = worker("small", 2), worker("large", 8)
    assert "large" == choose(ONE, [small, large], free(small, large), "q")
    left = {**free(small, large), "large": {"cpus": 1.0, "memory_bytes": 1e9}}
    assert "small" == choose(ONE, [small, large], left, "q")


def test_a_job_goes_only_where_it_fits_and_to_workers_of_its_queue() -> None:
    workers = [worker("small", 2), worker("other", 8, queues=("r",)), worker("closing", 8, closing=True)]
    assert choose(Need({"cpus": 4}), workers, free(*workers), "q") is None
    assert "other" == choose(Need({"cpus": 4}), workers, free(*workers), "r")
    assert choose(Need({"cpus": 1, "memory_bytes": 2e9}), workers, free(*workers), "q") is None


def test_a_container_needs_a_worker_with_its_runtime() -> None:
    plain, docker = worker("plain", 2), worker("docker", 2, runtimes=("docker",))
    assert not can_run(plain, Need({}, "auto"), "q")
    assert can_run(docker, Need({}, "auto"), "q")
    assert can_run(docker, Need({}, "docker"), "q")
    assert not can_run(docker, Need({}, "podman"), "q")


def test_for_a_job_that_fits_nowhere_now_the_worker_that_lacks_the_least_is_kept_free() -> None:
    small, busy, half = worker("small", 2), worker("busy", 8), worker("half", 8)
    left = {**free(small), "busy": {"cpus": 1.0}, "half": {"cpus": 5.0}}
    large = Need({"cpus": 6})
    assert choose(large, [small, busy, half], left, "q") is None
    assert "half" == worker_to_hold(large, [small, busy, half], left, "q")
    assert "busy" == choose(ONE, [busy, half], left, "q", held={"half"})
    assert worker_to_hold(Need({"cpus": 16}), [small, busy, half], left, "q") is None


def test_what_a_worker_reported_is_corrected_by_what_happened_since() -> None:
    state = worker("w", 8, free={"cpus": 3.0})
    assert {"cpus": 3.5} == free_amounts(state, [Need({"cpus": 1.5})], [Need({"cpus": 2})])


def test_a_job_waits_at_the_only_worker_that_can_run_it_and_as_many_as_that_has_room_for() -> None:
    only, small = worker("only", 4), worker("small", 1)
    two = Need({"cpus": 2})
    full = {"only": {"cpus": 0.0, "memory_bytes": 1e9, "gpus": 0}, "small": {"cpus": 1.0, "memory_bytes": 1e9}}
    assert "only" == worker_to_wait_at(two, [only, small], full, "q")
    assert worker_to_wait_at(two, [only, small], {**full, "only": {"cpus": -3.0}}, "q") is None
    assert worker_to_wait_at(two, [only, worker("other", 4)], {**full, "other": {"cpus": 0.0}}, "q") is None
    assert worker_to_wait_at(Need({"cpus": 8}), [only, small], full, "q") is None
