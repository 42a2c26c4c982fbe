"""Advice, against histories of which the truth is known."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from jobmeter.analyse.size.advice import Advice, Amount
from jobmeter.analyse.size.policy import Policy
from jobmeter.analyse.size.predictor import advise, fit
from jobmeter.model import Requirement

GIB = 2**30
MIB = 2**20


def run(gigabytes: float, seconds: float = 600.0, status: str = "completed", **fields: Any) -> dict[str, Any]:
    usual = {
        "id": "run1", "name": "train", "status": status, "memory_peak_bytes": gigabytes * GIB, "wall_seconds": seconds,
        "memory_quality": "exact", "cpu_peak_percent": 98.0, "cpu_mean_percent": 90.0, "cpu_seconds": 0.9 * seconds,
    }  # fmt: skip
    return {**usual, **fields}


def part(advice: Advice, key: str) -> Amount:
    return next(amount for amount in advice.amounts if amount.resource.key == key)


def memory(rows: list[dict[str, Any]], **policy: Any) -> float:
    """GiB to request."""
    return part(advise("train", rows, Policy(**policy)), "memory").request / GIB


def runtime(rows: list[dict[str, Any]], **policy: Any) -> float:
    return part(advise("train", rows, Policy(**policy)), "runtime").request


def histories(seed: int, count: int, deviation: float) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [run(4 * math.exp(rng.gauss(0, deviation)), 900 * math.exp(rng.gauss(0, deviation))) for _ in range(count)]


MEDIANS = {"memory": 4.0 * GIB, "runtime": 900.0}
"""Of `histories`."""


@pytest.mark.parametrize(("target", "count", "deviation"), [(0.9, 10, 0.3), (0.99, 30, 0.2), (0.95, 300, 0.6)])
def test_no_more_next_runs_fail_than_the_target_allows(target: float, count: int, deviation: float) -> None:
    policy = Policy(target, below_peak=True)
    advices = [advise("train", histories(seed, count, deviation), policy) for seed in range(100)]
    assert sum(true_failures(advice, deviation) for advice in advices) / 100 <= 1 - target


def true_failures(advice: Advice, deviation: float) -> float:
    """The share of the runs of `histories` that fails with this advice."""
    distances = (math.log(part(advice, key).request / median) for key, median in MEDIANS.items())
    return sum(math.erfc(distance / deviation / math.sqrt(2)) / 2 for distance in distances)


@pytest.mark.parametrize(("target", "count"), [(0.98, 3), (0.98, 5), (0.98, 10), (0.98, 30), (0.999, 10), (0.999, 100)])
def test_the_failure_rate_that_is_shown_is_near_the_true_one_however_few_runs_there_are(
    target: float, count: int
) -> None:
    advices = [advise("train", histories(seed, count, 0.3), Policy(target, below_peak=True)) for seed in range(60)]
    shown = sum(advice.fails or 0.0 for advice in advices)
    assert 1 / 4 < shown / sum(true_failures(advice, 0.3) for advice in advices) < 4


SWEEP = {"sw_50": 58 * MIB / GIB, "sw_100": 108 * MIB / GIB, "sw_180": 188 * MIB / GIB}


def sweeps(count: int) -> list[dict[str, Any]]:
    """So many runs of a sweep of which each job needs the same in every run."""
    return [run(size, 4.01, name=name) for _ in range(count) for name, size in SWEEP.items()]


def test_what_the_jobs_of_a_sweep_differ_by_is_not_chance() -> None:
    """Each needs the same in every run: the largest a little more than it was seen to need, in runs without end."""
    requests = [memory(sweeps(count)) * GIB / MIB for count in range(1, 13)]
    assert sorted(requests, reverse=True) == requests
    assert requests[0] <= 188 * 1.25 * 1.03 + 5
    assert all(188 < size < 1.5 * 188 for size in requests[1:])


@pytest.mark.parametrize("seconds", [4.01, 0.3, 47.0, 3000.0])
def test_more_runs_that_are_equal_never_raise_the_request(seconds: float) -> None:
    rows = [run(1, seconds)] * 12
    times = [runtime(rows[:count]) for count in range(1, 13)]
    sizes = [memory(rows[:count]) for count in range(1, 13)]
    assert (sorted(times, reverse=True), sorted(sizes, reverse=True)) == (times, sizes)


def test_a_sweep_is_as_safe_as_its_largest_job() -> None:
    """Jobs at levels of their own, each with chance around it: the next run of the largest stays below."""
    over = 0.0
    for seed in range(100):
        rng = random.Random(seed)
        rows = [
            run(level * math.exp(rng.gauss(0, 0.2)), name=f"job{level}") for _ in range(4) for level in (1, 2, 3, 4, 8)
        ]
        request = part(advise("job{i}", rows, Policy(0.98, below_peak=True)), "memory").request
        over += math.erfc(math.log(request / (8 * GIB)) / 0.2 / math.sqrt(2)) / 2
    assert over / 100 <= 0.01


def test_of_a_sweep_that_ran_once_it_is_the_margin_of_one_run_of_its_largest() -> None:
    amount = part(advise("sw_{n}", sweeps(1)), "memory")
    assert "of its largest job, sw_180 needed 188 MiB; how runs differ is not known, so 1.25 times" in amount.reason
    assert None is amount.fails


def test_a_sweep_whose_jobs_hardly_differ_needs_no_such_margin() -> None:
    rows = [run(4 + number % 7 / 100, 600 + number % 5, name=f"seed{number}") for number in range(100)]
    advice = advise("seed{i}", rows)
    assert (True, True) == (part(advice, "memory").request < 4.8 * GIB, part(advice, "runtime").request < 800)
    assert part(advise("seed{i}", rows[:5] + rows), "memory").request < 4.8 * GIB
    assert advice.fails is not None
    one_is_large = [*rows, run(40, name="large")]
    assert part(advise("seed{i}", one_is_large), "memory").request >= 50 * GIB


def test_the_expected_failure_rate_is_within_the_target_and_falls_as_the_target_rises() -> None:
    rows = histories(1, 100, 0.3)
    shares = [advise("train", rows, Policy(target, below_peak=True)).fails for target in (0.8, 0.95, 0.999)]
    failure_rates = [share for share in shares if share is not None]
    assert sorted(failure_rates, reverse=True) == failure_rates
    assert all(share <= 1 - target for share, target in zip(failure_rates, (0.8, 0.95, 0.999)))


def test_more_spread_needs_more_buffer() -> None:
    sizes = [memory(histories(4, 40, deviation)) for deviation in (0.02, 0.2, 0.6)]
    assert sizes[0] < sizes[1] < sizes[2]


def test_less_sure_figures_need_more_buffer() -> None:
    sizes = [memory([run(4, memory_quality=quality)] * 20) for quality in ("exact", "sampled", "at least")]
    assert sizes[0] < sizes[1] < sizes[2]


def test_runs_that_are_alike_need_little_more_than_they_used() -> None:
    assert 4 < memory([run(4)] * 50) <= 4.5


def test_after_a_large_past_memory_falls_and_a_time_limit_only_if_that_is_allowed() -> None:
    past = [run(6, 7200.0, id=f"old{number}") for number in range(50)]
    rows = [run(1, 60.0, id=f"new{number}") for number in range(300)] + past
    assert (7200, True) == (runtime(rows), memory(rows) < 2)
    assert runtime(rows, below_peak=True) < 600


def test_of_one_run_the_spread_is_unknown_and_it_says_so() -> None:
    advice = advise("train", [run(4, 600.0)])
    amounts = [part(advice, key) for key in ("memory", "runtime")]
    assert [5.15 * GIB, 760.0] == [pytest.approx(amounts[0].request, rel=0.02), amounts[1].request]
    assert None is advice.fails
    assert all("how runs differ is not known" in amount.reason for amount in amounts)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_of_very_few_runs_no_absurd_multiple_is_advised(count: int) -> None:
    rows = [run(size) for size in (1.0, 4.0, 2.0, 3.0)[:count]]
    assert 4 < memory(rows) <= 4 * 2.1


def test_out_of_memory_is_a_lower_bound_and_clearly_more_is_requested() -> None:
    rows = [run(8, 300.0, "oom", requirement_memory_bytes=8 * GIB), *[run(5)] * 3]
    amount = part(advise("train", rows), "memory")
    assert amount.request >= 12 * GIB
    assert "8 GiB was not enough and no run is known to have used more" in amount.reason


def test_out_of_memory_under_a_limit_of_someone_else_is_a_bound_by_what_was_used() -> None:
    rows = [run(2, 60.0, "oom", requirement_memory_bytes=64 * GIB), *[run(1.9)] * 10]
    assert 3 <= memory(rows) < 6.4


def test_out_of_memory_below_what_others_needed_is_nothing_new() -> None:
    rows = [*[run(10 + number % 2 / 10) for number in range(20)], run(8, 9.0, "oom", requirement_memory_bytes=8 * GIB)]
    assert 10 < memory(rows) < 12


def test_when_nothing_succeeded_it_is_a_guess_and_says_so() -> None:
    advice = advise("train", [run(8, 300.0, "oom", requirement_memory_bytes=8 * GIB)])
    amount = part(advice, "memory")
    assert (True, None) == (amount.request >= 16 * GIB, advice.fails)
    assert "no run has completed" in amount.reason
    assert "a guess" in amount.reason


def test_of_a_job_that_never_completed_only_what_it_met_is_known() -> None:
    failed, full, slow = (
        advise("train", [run(1, 60.0, status, requirement_memory_bytes=GIB, requirement_runtime_seconds=60)])
        for status in ("failed", "oom", "timeout")
    )
    assert [[], ["memory"], ["runtime"]] == [
        [amount.resource.key for amount in advice.amounts] for advice in (failed, full, slow)
    ]
    assert Requirement(memory_bytes=2 * GIB + GIB // 16) == full.requirement()


def test_after_a_timeout_clearly_more_time_is_requested() -> None:
    rows = [run(1, 3601.0, "timeout", requirement_runtime_seconds=3600), *[run(1, 1800.0)] * 5]
    assert runtime(rows) >= 5400


def test_a_limit_that_was_met_once_and_long_ago_is_forgotten() -> None:
    hung = run(8, 86400.0, "timeout", requirement_runtime_seconds=86400)
    full = run(8, 60.0, "oom", requirement_memory_bytes=8 * GIB)
    rows = [*[run(1, 60.0)] * 300, hung, full]
    assert (True, True) == (runtime(rows, below_peak=True) < 120, memory(rows) < 2)
    assert (True, True) == (runtime([hung, *rows[:20]]) >= 129600, memory([full, *rows[:20]]) >= 12)


def test_a_limit_below_what_a_failed_run_used_is_no_reason() -> None:
    rows = [run(9, 60.0, "failed"), run(4, 60.0, "oom", requirement_memory_bytes=4 * GIB), *[run(1)] * 6]
    amount = part(advise("train", rows), "memory")
    assert (True, False) == (amount.request >= 9 * GIB, "4 GiB" in amount.reason)


@pytest.mark.parametrize("target", [1e-300, 0.99999, 0.9999999999999999])
def test_no_target_is_too_extreme_and_none_is_said_to_be_certain(target: float) -> None:
    amount = part(advise("train", [run(1)] * 10, Policy(target)), "memory")
    assert GIB < amount.request < 3 * GIB
    assert "100 %" not in amount.reason


@pytest.mark.parametrize("status", ["failed", "killed", "cancelled", "lost", "detached"])
def test_a_run_that_did_not_come_to_its_end_is_a_lower_bound(status: str) -> None:
    plain = [run(4 + number % 3 / 10) for number in range(20)]
    assert memory([run(0.1, 1.0, status), *plain]) == memory(plain)
    assert memory([run(9, 1.0, status), *plain]) >= 9


def test_running_runs_do_not_change_the_advice() -> None:
    assert memory([run(100, 1.0, "running"), *[run(4)] * 20]) == memory([run(4)] * 20)


def test_enough_cpus_for_a_clean_check_are_requested_and_a_much_lower_mean_is_reported() -> None:
    rows = [run(1, cpu_peak_percent=390.0, cpu_mean_percent=55.0), run(1, cpu_peak_percent=101.0)]
    amount = part(advise("train", rows), "cpus")
    assert 4 == amount.request
    assert "on average" in amount.reason


def test_a_busy_single_thread_needs_one_cpu() -> None:
    assert 1 == part(advise("train", [run(1, cpu_peak_percent=101.3, cpu_mean_percent=99.9)]), "cpus").request


def test_a_job_that_only_waits_is_not_said_to_use_less_on_average() -> None:
    rows = [run(1, cpu_peak_percent=0.3, cpu_mean_percent=0.1)]
    assert "at most 0 at once" == part(advise("train", rows), "cpus").reason


def test_who_used_all_the_cpus_there_were_may_use_more() -> None:
    rows = [run(1, cpu_peak_percent=199.0, cpu_mean_percent=180.0, requirement_cpus=2)]
    assert "all it requested" in part(advise("train", rows), "cpus").reason
    assert "all the machine has" in part(advise("train", rows, machine_cpus=2), "cpus").reason


def test_what_the_present_request_wastes_is_reported_for_each_run() -> None:
    requested: dict[str, Any] = {"requirement_memory_bytes": 8 * GIB, "requirement_cpus": 4}
    advice = advise("train", [run(2, 3600.0, **requested)] * 3)
    assert pytest.approx(6.0) == advice.wasted_gb_hours
    assert pytest.approx(3.1) == advice.wasted_core_hours
    assert None is advise("train", [run(2)]).wasted_gb_hours


def test_the_present_request_is_that_of_the_newest_run_before_any_retry() -> None:
    def attempt(number: int, flow_run: int, gigabytes: float, status: str = "completed") -> dict[str, Any]:
        of = {"workflow": "flow", "workflow_run": flow_run, "requirement_memory_bytes": gigabytes * GIB}
        return run(5, 60.0, status, workflow_job={"job_id": 1, "step": "train", "attempt": number}, **of)

    rows = [attempt(2, 2, 12), attempt(1, 2, 8, "oom"), attempt(1, 1, 4)]
    assert 8 * GIB == part(advise("train", rows), "memory").today


def test_what_is_usual_is_never_more_than_the_most() -> None:
    for quality in ("exact", "sampled", "at least"):
        advice = advise("train", [run(1, memory_quality=quality, cpu_peak_percent=30.0)] * 3)
        assert all(amount.usual <= amount.most for amount in advice.amounts)


def test_rounding_never_raises_what_was_enough() -> None:
    rows = [run(0.001, 1.0, requirement_runtime_seconds=2, requirement_memory_bytes=8 * MIB)] * 20
    assert (2, 8 * MIB / GIB) == (runtime(rows), memory(rows))


def test_reasons_say_what_was_added_and_rounded() -> None:
    small = part(advise("train", [run(0.001)] * 20), "memory").reason
    assert small.endswith("; rounded up to 8 MiB, the least")
    sampled = part(advise("train", [run(1, memory_quality="sampled")] * 20), "memory").reason
    assert sampled.endswith(", with 10 % for what the figure may miss")


def test_amounts_are_such_as_people_write() -> None:
    sizes = [part(advise("train", [run(gigabytes)] * 30), "memory").request for gigabytes in (0.01, 0.3, 3, 30)]
    assert [0, 0, 0, 0] == [size % step for size, step in zip(sizes, (MIB, 2 * MIB, 16 * MIB, 128 * MIB))]
    times = [runtime([run(1, seconds)] * 30) for seconds in (0.01, 50, 1000, 20000)]
    assert [5, 0, 0] == [times[0], times[2] % 10, times[3] % 60]


def test_nothing_is_advised_on_what_no_run_measured() -> None:
    assert [] == advise("train", []).amounts
    assert ["Runtime"] == [
        a.resource.name
        for a in advise("t", [{"id": "a", "name": "t", "status": "completed", "wall_seconds": 3.0}]).amounts
    ]


def test_a_request_of_cpus_that_was_enough_is_never_raised() -> None:
    """A tenth of a CPU is enough for a job that hardly computes, though other runs of it had a whole one."""
    small = run(1, cpu_peak_percent=8.0, cpu_mean_percent=6.0, requirement_cpus=0.1, wall_seconds=100.0)
    free = run(2, cpu_peak_percent=90.0, cpu_mean_percent=60.0, wall_seconds=100.0)
    for rows in ([small], [small, free]):
        assert 0.1 == part(advise("train", rows), "cpus").request
    assert part(advise("train", [small, free]), "cpus").reason.endswith("; what it requests today was enough")


def test_fractions_of_a_cpu_stay_fractions() -> None:
    rows = [run(1, cpu_peak_percent=31.0, cpu_mean_percent=25.0, requirement_cpus=0.1, wall_seconds=100.0)]
    assert 0.4 == part(advise("train", rows), "cpus").request
    short = [run(1, cpu_peak_percent=20.0, cpu_mean_percent=20.0, requirement_cpus=0.5, wall_seconds=0.3)]
    assert 0.2 == part(advise("train", short), "cpus").request
    whole = [{**row, "requirement_cpus": 1} for row in rows]
    assert 1 == part(advise("train", whole), "cpus").request


@pytest.mark.parametrize(
    ("mean", "peak", "expected"),
    [(106.0, 106.0, 1.1), (97.0, 108.0, 1), (220.0, 230.0, 2.3), (180.0, 195.0, 2), (350.0, 360.0, 4)],
)
def test_a_little_above_a_cpu_is_no_second_one(mean: float, peak: float, expected: float) -> None:
    rows = [run(1, cpu_peak_percent=peak, cpu_mean_percent=mean, requirement_cpus=4, wall_seconds=600.0)] * 5
    assert expected == part(advise("train", rows), "cpus").request


@pytest.mark.parametrize("label", ["version", "container"])
def test_runs_of_an_older_version_do_not_count_once_several_of_the_new_one_completed(label: str) -> None:
    older = [run(8, 3000.0, labels={label: "1.9"})] * 30
    newer = [run(2, 300.0, labels={label: "1.10"})] * 3
    assert memory(newer[:2] + older) >= 8
    for rows in (newer + older, [run(2, 300.0, "failed", labels={label: "1.10"}), *newer, *older]):
        assert (True, True) == (memory(rows) < 3, runtime(rows) < 600)
    assert f"3 runs of {label} 1.10 needed up to" in part(advise("train", newer + older), "memory").reason
    predictor = fit("train", newer[:2] + older)
    predictor.update(newer[0])
    assert part(predictor.predict(), "memory").request < 3 * GIB


def test_versions_that_run_side_by_side_all_count() -> None:
    rows = [run(2 if number % 2 else 8, labels={"version": f"{number % 2}"}) for number in range(1, 31)]
    assert memory(rows) >= 8


def test_gpu_memory_is_advised_where_it_was_measured() -> None:
    rows = [run(1, gpu_memory_peak_bytes=(6 + number % 3 / 10) * GIB, gpus_peak=1) for number in range(20)]
    advice = advise("train", rows)
    amount = part(advice, "gpu_memory")
    assert 6.2 * GIB <= amount.request <= 7.5 * GIB
    assert "20 runs needed up to 6.2 GiB" in amount.reason
    assert advice.fails == advise("train", [run(1, gpus_peak=1)] * 20).fails
    assert "gpu_memory" not in {each.resource.key for each in advise("train", [run(1)] * 20).amounts}
    predictor = fit("train", [run(1)] * 3)
    for row in rows:
        predictor.update(row)
    assert 6.2 * GIB <= part(predictor.predict(), "gpu_memory").request <= 7.5 * GIB


def test_a_version_is_no_feature() -> None:
    rows = [run(1 + number % 5, labels={"version": f"{number % 5}"}) for number in range(40)]
    assert "by their" in part(advise("train", rows, features={"version": 4.0}), "memory").reason


def test_a_request_with_a_fraction_is_raised_in_tenths() -> None:
    rows = [run(1, cpu_peak_percent=260.0, cpu_mean_percent=250.0, requirement_cpus=1.5, wall_seconds=100.0)]
    assert 2.6 == part(advise("train", rows), "cpus").request


def test_needs_that_come_in_turns_are_all_covered_not_only_the_next() -> None:
    """A sweep runs its jobs in the same order each time: what the next needs can be guessed, but others come after."""
    needs = [(4 << 30) + turn % 5 * (50 << 20) for turn in range(40, 0, -1)]
    done = {"name": "a", "status": "completed", "wall_seconds": 60.0}
    rows = [{**done, "id": f"run{place}", "memory_peak_bytes": need} for place, need in enumerate(needs)]
    (memory,) = (amount for amount in advise("a", rows).amounts if amount.resource.key == "memory")
    assert memory.request >= max(needs)
