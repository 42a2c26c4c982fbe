"""cgroup v2 on a kernel that has it: what jobmeter makes there, reads there, and leaves there."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.headline import TICK
from tests.guest.conftest import Scenario

pytestmark = pytest.mark.guest

MIB = 1 << 20
GROUPED = ("burst", "delegated_alone", "delegated_beside")
EVERYWHERE = (
    "idle", "burst", "overrun", "readers", "pressure", "left_behind",
    "delegated_alone", "delegated_alone_leaving", "delegated_beside", "delegated_crowded", "not_delegated",
    "not_delegated_without_perf", "root_group_without_perf", "limited_crowded",
    "nested", "nested_killed", "two_at_once",
)  # fmt: skip


def peak(record: dict[str, Any], key: str) -> float:
    return float(record["measurements"][key]["peak"])


def total(record: dict[str, Any], key: str) -> float:
    return float(record["measurements"][key]["total"])


def cgroup_keys(record: dict[str, Any]) -> list[str]:
    figures = [figure["from"] for figure in record["usage"].values()]
    return [key for key in [*record["measurements"], *figures] if key.startswith("cgroup_")]


@pytest.mark.parametrize("name", GROUPED)
def test_peak_memory_of_a_burst_is_exact_in_a_v2_group(scenario: Scenario, name: str) -> None:
    interpreter = peak(scenario("idle")["record"], "cgroup_mem_peak")
    record = scenario(name)["record"]
    assert peak(record, "cgroup_mem_peak") == pytest.approx(100 * MIB + interpreter, rel=0.05)


@pytest.mark.parametrize("name", GROUPED)
def test_the_headline_says_the_peak_of_a_burst_and_that_it_is_exact(scenario: Scenario, name: str) -> None:
    interpreter = scenario("idle")["record"]["usage"]["memory_peak_bytes"]["value"]
    figure = scenario(name)["record"]["usage"]["memory_peak_bytes"]
    assert figure["value"] == pytest.approx(100 * MIB + interpreter, rel=0.05)
    assert figure["quality"] == "exact"


@pytest.mark.parametrize("name", GROUPED)
def test_the_headline_is_the_peak_of_the_group_or_of_a_process_that_maps_files_others_pay_for(
    scenario: Scenario, name: str
) -> None:
    record = scenario(name)["record"]
    largest = max(peak(record, "cgroup_mem_peak"), peak(record, "rusage_maxrss"))
    assert record["usage"]["memory_peak_bytes"]["value"] == largest


@pytest.mark.parametrize("name", GROUPED)
def test_cpu_time_of_the_group_agrees_with_what_wait4_says(scenario: Scenario, name: str) -> None:
    record = scenario(name)["record"]
    counted, figure = total(record, "cgroup_cpu_seconds"), record["usage"]["cpu_seconds"]
    assert counted >= 0.5
    assert counted == pytest.approx(total(record, "rusage_cpu_seconds"), rel=0.2, abs=0.1)
    # While the machine of an emulated CPU does not run it, time passes that the guest counts for the process there, and
    # sources that are read later have it: then one of these is the headline.
    is_headline = (figure["from"], figure["quality"]) == ("cgroup_cpu_seconds", "exact")
    assert is_headline or figure["value"] > counted + TICK, record["measurements"]


@pytest.mark.parametrize(("name", "processes"), [("burst", 1), ("readers", 5)])
def test_the_most_processes_at_any_moment_are_counted(scenario: Scenario, name: str, processes: int) -> None:
    assert processes == peak(scenario(name)["record"], "cgroup_pids_peak")


@pytest.mark.parametrize("name", EVERYWHERE)
def test_no_group_is_left_behind(scenario: Scenario, name: str) -> None:
    assert scenario(name)["groups_left"] == []


def test_a_job_over_its_enforced_limit_is_killed_by_the_kernel_and_reported_as_oom(scenario: Scenario) -> None:
    observation = scenario("overrun")
    assert observation["record"]["outcome"] == {"status": "oom", "exit_code": None, "signal": 9}
    assert observation["exit_code"] == 128 + 9
    assert total(observation["record"], "cgroup_oom_kills") >= 1


def test_an_enforced_limit_is_never_exceeded(scenario: Scenario) -> None:
    assert 30 * MIB < peak(scenario("overrun")["record"], "cgroup_mem_peak") <= 40 * MIB


def test_the_headline_does_not_exceed_an_enforced_limit(scenario: Scenario) -> None:
    assert scenario("overrun")["record"]["usage"]["memory_peak_bytes"]["value"] <= 40 * MIB


def test_memory_shared_by_readers_is_counted_once(scenario: Scenario) -> None:
    record = scenario("readers")["record"]
    for size in (peak(record, "cgroup_mem_peak"), record["usage"]["memory_peak_bytes"]["value"]):
        assert 60 * MIB < size < 90 * MIB


def test_pressure_is_measured_where_the_kernel_reports_it(scenario: Scenario) -> None:
    record = scenario("pressure")["record"]
    for resource in ("mem", "cpu", "io"):
        assert total(record, f"cgroup_{resource}_pressure_seconds") >= 0


def test_root_has_the_group_made_below_its_own(scenario: Scenario) -> None:
    observation = scenario("burst")
    assert observation["group_of_meter"] == "/"
    assert observation["group_of_job"].startswith("/jobmeter-")


def test_a_jobmeter_alone_in_a_delegated_group_steps_down_to_make_room(scenario: Scenario) -> None:
    observation = scenario("delegated_alone")
    meter, job = observation["group_of_meter"], observation["group_of_job"]
    assert meter.startswith("/alone/jobmeter-")
    assert meter.endswith("-meter")
    assert job.startswith("/alone/jobmeter-")
    assert job != meter


def test_a_delegated_group_is_afterwards_as_it_was(scenario: Scenario) -> None:
    assert scenario("delegated_alone")["handed_down"] == []


def test_a_jobmeter_beside_others_has_the_group_made_beside_its_own(scenario: Scenario) -> None:
    observation = scenario("delegated_beside")
    assert observation["group_of_meter"] == "/beside/shell"
    assert observation["group_of_job"].startswith("/beside/jobmeter-")


@pytest.mark.parametrize(
    ("name", "inside"),
    [("not_delegated", "/plain"), ("delegated_crowded", "/crowded"), ("limited_crowded", "/limited")],
)
def test_without_a_place_for_a_group_nothing_is_taken_from_one_and_the_record_says_why(
    scenario: Scenario, name: str, inside: str
) -> None:
    observation = scenario(name)
    collector = observation["record"]["provenance"]["collectors"]["cgroup"]
    assert observation["group_of_job"] == inside
    assert cgroup_keys(observation["record"]) == ["cgroup_outer_cpu_seconds"]
    assert collector["available"] is False
    assert inside in collector["why"]


def test_without_a_group_and_without_perf_the_group_around_the_job_shows_that_nothing_is_missing(
    scenario: Scenario,
) -> None:
    record = scenario("not_delegated_without_perf")["record"]
    around, figure = total(record, "cgroup_outer_cpu_seconds"), record["usage"]["cpu_seconds"]
    assert around == pytest.approx(total(record, "rusage_cpu_seconds"), rel=0.1)
    is_all = abs(around - figure["value"]) <= 0.015 * figure["value"]  # else the host kept an emulated CPU waiting
    assert figure["quality"] == "exact" or not is_all, record["measurements"]


def test_the_root_group_counts_by_ticks_and_bounds_nothing(scenario: Scenario) -> None:
    record = scenario("root_group_without_perf")["record"]
    assert cgroup_keys(record) == []
    assert record["usage"]["cpu_seconds"]["quality"] == "at least"


def test_without_a_group_the_peak_of_a_burst_is_known_all_the_same(scenario: Scenario) -> None:
    figure = scenario("not_delegated")["record"]["usage"]["memory_peak_bytes"]
    assert 100 * MIB < figure["value"] < 120 * MIB
    assert figure["from"].startswith(("proc_", "rusage_"))
    assert figure["quality"] in ("sampled", "at least")  # a memfd or a pipe would not be in it


@pytest.mark.parametrize(("name", "inside"), [("left_behind", "/"), ("delegated_alone_leaving", "/leaving")])
def test_what_a_job_leaves_running_goes_on_where_the_job_came_from(scenario: Scenario, name: str, inside: str) -> None:
    observation = scenario(name)
    assert observation["state_of_left"] == "S"
    assert observation["group_of_left"] == inside
    assert observation["record"]["provenance"]["left_running"] == 1
    assert observation["record"]["usage"]["cpu_seconds"]["quality"] == "at least"


def test_a_jobmeter_within_a_job_stays_in_what_the_outer_one_measures(scenario: Scenario) -> None:
    observation = scenario("nested")
    outer, inner = observation["group_of_job"].strip("/").split("/")
    assert outer != inner
    assert peak(observation["record"], "cgroup_mem_peak") > 100 * MIB


def test_a_jobmeter_within_a_job_stays_in_what_the_outer_one_limits(scenario: Scenario) -> None:
    record = scenario("nested_killed")["record"]
    assert record["outcome"]["status"] == "oom"
    assert peak(record, "cgroup_mem_peak") <= 40 * MIB


def test_two_jobs_of_one_process_keep_a_group_each_until_they_end(scenario: Scenario) -> None:
    first, second = scenario("two_at_once")["records"]
    interpreter = peak(first, "cgroup_mem_peak")
    assert peak(second, "cgroup_mem_peak") == pytest.approx(100 * MIB + interpreter, rel=0.05)
    assert total(second, "cgroup_cpu_seconds") >= 0.5
    assert second["provenance"]["collectors"]["cgroup"] == {"available": True}


def test_a_job_that_is_squeezed_for_memory_waited_for_it(scenario: Scenario) -> None:
    record = scenario("squeezed")["record"]
    waited = total(record, "cgroup_mem_pressure_seconds")
    assert waited > 0.2 * record["wall_seconds"], record["measurements"]
    assert "waits_memory" in [finding["kind"] for finding in record["findings"]]
    assert 0 == total(scenario("idle")["record"], "cgroup_mem_pressure_seconds")
