"""What no advice may be, whatever the history."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobmeter.analyse.size.advice import Advice, Amount
from jobmeter.analyse.size.need import Need
from jobmeter.analyse.size.policy import Policy
from jobmeter.analyse.size.predictor import advise, fit
from jobmeter.analyse.size.sizer import Sizer

MIB = 2**20
few = settings(max_examples=60, deadline=None)
sizes = st.floats(8 * MIB, 2**40)
seconds = st.floats(0.01, 1e6)


def run(size: float, time: float = 60.0, status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {
        "id": "a", "name": "job", "status": status, "memory_peak_bytes": size, "wall_seconds": time,
        "memory_quality": "exact", "cpu_peak_percent": 95.0, "cpu_mean_percent": 90.0, **fields,
    }  # fmt: skip


def part(advice: Advice, key: str) -> Amount:
    return next(amount for amount in advice.amounts if amount.resource.key == key)


@few
@given(st.lists(st.tuples(sizes, seconds), min_size=1, max_size=40))
def test_a_request_that_never_failed_and_is_above_every_need_is_not_raised(runs: list[tuple[float, float]]) -> None:
    requested: dict[str, Any] = {
        "requirement_memory_bytes": 1.1 * max(size for size, _ in runs),
        "requirement_runtime_seconds": 1.1 * max(time for _, time in runs),
    }
    advice = advise("job", [run(size, time, **requested) for size, time in runs])
    assert part(advice, "memory").request <= requested["requirement_memory_bytes"]
    assert part(advice, "runtime").request <= requested["requirement_runtime_seconds"]


@few
@given(sizes, seconds, st.integers(1, 40))
def test_advice_does_not_grow_because_more_equal_runs_came_in(size: float, time: float, count: int) -> None:
    fewer, more = (advise("job", [run(size, time)] * number) for number in (count, count + 1))
    for key in ("memory", "runtime"):
        assert part(more, key).request <= part(fewer, key).request


@few
@given(st.lists(seconds, min_size=1, max_size=40))
def test_a_time_limit_is_not_below_the_longest_run(times: list[float]) -> None:
    advice = advise("job", [run(MIB * 64, time) for time in times])
    assert part(advice, "runtime").request >= max(times)


@few
@given(st.lists(sizes, min_size=1, max_size=40), st.floats(0.5, 0.999))
def test_no_advice_is_above_twice_the_largest_need_or_below_the_smallest(needs: list[float], target: float) -> None:
    amount = part(advise("job", [run(size) for size in needs], Policy(target)), "memory")
    assert min(needs) <= amount.request <= 2.2 * max(needs) + 6 * MIB


@few
@given(st.lists(sizes, min_size=1, max_size=12))
def test_where_all_ran_out_of_memory_more_is_advised_than_any_had(limits: list[float]) -> None:
    rows = [run(size, status="oom", requirement_memory_bytes=size) for size in limits]
    assert part(advise("job", rows), "memory").request >= 1.5 * max(limits)


@few
@given(st.floats(1.0, 1.1))
def test_a_peak_of_an_instant_is_no_second_cpu(peak: float) -> None:
    rows = [run(MIB, 600.0, cpu_peak_percent=100 * peak, cpu_mean_percent=97.0)] * 3
    assert 1 == part(advise("job", rows), "cpus").request


def steep(far: float, near: float) -> list[tuple[float, float]]:
    """Runs whose feature differs so little that a power of it which explains their needs has no factor in floats."""
    return [(far, 4.76e11), (near, 4.66e11), (near, 4.66e11 + 5), (near, 4.66e11 + 1), (far, 4.76e11)]


@few
@given(st.lists(st.tuples(sizes, st.floats(0, 1e12)), min_size=2, max_size=40), st.floats(0, 1e12))
@example(steep(8.9e6, 1.85e7), 0)
@example(steep(1.85e7, 8.9e6), 0)
def test_learning_run_by_run_is_as_learning_at_once(runs: list[tuple[float, float]], coming: float) -> None:
    """Not the same number, for the newest are predicted without those that came later: but of the same order."""
    rows = [run(size, labels={"bytes": str(number)}) for size, number in runs]
    online = fit("job", rows[-1:], Policy())
    for row in rows[-2::-1]:
        online.update(row)
    at_once = fit("job", rows, Policy())
    largest = max(size for size, _ in runs)
    beyond = max(1.0, coming / max(max(number for _, number in runs), 1e-9))
    for predictor in (online, at_once):
        request = part(predictor.predict({"bytes": coming}), "memory").request
        assert 0 < request <= 2.2 * largest * beyond + 6 * MIB


@few
@given(st.integers(2, 60))
def test_a_feature_that_explains_the_need_is_used(count: int) -> None:
    rows = [
        run((100 + 50 * number) * MIB, labels={"mesh": str(number), "seed": str(number * 7919 % 13)})
        for number in range(1, count + 9)
    ]
    for mesh in (1, count):
        amount = part(advise("job", rows, features={"mesh": mesh}), "memory")
        assert (100 + 50 * mesh) * MIB <= amount.request <= 1.5 * (100 + 50 * mesh) * MIB + 6 * MIB
        assert "of mesh" in amount.reason


def test_an_input_larger_than_ever_is_not_sized_as_the_usual_ones() -> None:
    """Of 40 runs only the four with the largest input needed more: one with a larger input is given more."""
    chance = random.Random(1)
    meshes = list(range(40))
    chance.shuffle(meshes)
    sizer = Sizer()
    needs = [(4000 + max(mesh - 36, 0) * 30) * MIB * chance.uniform(0.998, 1.002) for mesh in meshes]
    sizer.learn(Need(need, {"mesh": 100.0 + mesh}, 60.0) for need, mesh in zip(needs, meshes))
    usual, beyond = (sizer.predict({"mesh": mesh}) for mesh in (120.0, 145.0))
    assert usual is not None
    assert beyond is not None
    assert usual.amount < beyond.amount < 1.1 * max(needs)
