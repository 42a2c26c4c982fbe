from __future__ import annotations

import pytest

from jobmeter.analyse.headline import CPU_SECONDS
from jobmeter.analyse.headline_table import usage
from tests.analyse.summaries import DESCRIBED, peaks, totals


@pytest.mark.parametrize("count", range(1, len(CPU_SECONDS) + 1))
def test_cpu_seconds_are_those_of_the_most_trusted_source_that_was_measured(count: int) -> None:
    measured = CPU_SECONDS[-count:]
    figure = usage(totals(**dict.fromkeys(measured, 10.0)), DESCRIBED, 20.0)["cpu_seconds"]
    assert (10.0, measured[0]) == (figure["value"], figure["from"])


def test_the_order_of_trust_is_the_written_one() -> None:
    written = ["block", "cgroup", "perf", "rusage", "proc", "psutil", "ps", "container"]
    assert written == [key.partition("_")[0] for key in CPU_SECONDS]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"cgroup_cpu_seconds": 10.0, "perf_cpu_seconds": 10.09}, "cgroup_cpu_seconds"),
        ({"cgroup_cpu_seconds": 10.0, "perf_cpu_seconds": 10.5}, "perf_cpu_seconds"),
        ({"cgroup_cpu_seconds": 10.0, "proc_cpu_seconds": 12.0}, "proc_cpu_seconds"),
        ({"perf_cpu_seconds": 5.0, "rusage_cpu_seconds": 9.0, "proc_cpu_seconds": 7.0}, "rusage_cpu_seconds"),
        ({"perf_cpu_seconds": 5.0, "rusage_cpu_seconds": 7.0, "proc_cpu_seconds": 9.0}, "proc_cpu_seconds"),
        ({"perf_cpu_seconds": 10.0, "rusage_cpu_seconds": 4.0}, "perf_cpu_seconds"),
        ({"perf_cpu_seconds": 0.926, "rusage_cpu_seconds": 0.975}, "rusage_cpu_seconds"),
        ({"perf_cpu_seconds": 0.926, "proc_cpu_seconds": 0.975}, "perf_cpu_seconds"),
        ({"perf_cpu_seconds": 0.926, "rusage_cpu_seconds": 0.940}, "perf_cpu_seconds"),
        ({"perf_cpu_seconds": 0.010, "proc_cpu_seconds": 0.050}, "perf_cpu_seconds"),
        ({"perf_cpu_seconds": 0.0, "rusage_cpu_seconds": 0.2}, "rusage_cpu_seconds"),
    ],
)
def test_a_less_trusted_source_that_reports_clearly_more_wins(values: dict[str, float], expected: str) -> None:
    figure = usage(totals(**values), DESCRIBED, 20.0)["cpu_seconds"]
    assert (expected, values[expected]) == (figure["from"], figure["value"])


@pytest.mark.parametrize(
    ("by_source", "expected"),
    [
        # The cgroup bears out that all of the difference was stolen.
        ({"cgroup": 3.79, "perf": 4.83, "stolen": 1.2}, (3.79, "cgroup_cpu_seconds", "exact")),
        # More than can have been stolen: a process left the cgroup.
        ({"cgroup": 1.0, "perf": 4.0, "stolen": 0.5}, (3.5, "perf_cpu_seconds", "at least")),
        ({"rusage": 3.79, "perf": 4.83, "stolen": 1.2}, (3.79, "perf_cpu_seconds", "at least")),
        # Another source bears out what perf counted, of a command shorter than what is known of the hypervisor.
        ({"rusage": 0.0042, "perf": 0.004, "stolen": 0.01}, (0.004, "perf_cpu_seconds", "exact")),
        # Children that nobody waited for, and hardly anything stolen.
        ({"rusage": 0.1, "perf": 10.0, "stolen": 0.1}, (9.9, "perf_cpu_seconds", "exact")),
        ({"rusage": 0.1, "perf": 10.0, "stolen": 0.0}, (10.0, "perf_cpu_seconds", "exact")),
        # More was stolen than the machine reports: the cgroup around the job used less than perf counted.
        ({"rusage": 15.29, "perf": 16.87, "stolen": 0.0, "cgroup_outer": 15.3}, (15.3, "perf_cpu_seconds", "exact")),
        # A process left that cgroup, so that it bounds nothing.
        ({"rusage": 5.0, "perf": 16.87, "stolen": 0.0, "cgroup_outer": 4.0}, (16.87, "perf_cpu_seconds", "exact")),
    ],
)
def test_time_that_a_hypervisor_stole_is_no_cpu_time_of_the_job(
    by_source: dict[str, float], expected: tuple[float, str, str]
) -> None:
    seconds = {
        f"{name}_cpu_seconds" if name != "stolen" else "perf_stolen_seconds": one for name, one in by_source.items()
    }
    figure = usage(totals(**seconds), DESCRIBED, 20.0)["cpu_seconds"]
    assert expected == (figure["value"], figure["from"], figure["quality"])


BOUNDED = [
    ("nothing else ran", {"rusage": 3.0, "cgroup_outer": 3.0005}, (3.0, "rusage", "exact")),
    ("the shepherd, and 2 % of accounts that differ", {"rusage": 3.0, "cgroup_outer": 3.061}, (3.0, "rusage", "exact")),
    ("something else ran, of the job or not", {"rusage": 3.0, "cgroup_outer": 3.07}, (3.0, "rusage", "at least")),
    ("a process left the cgroup", {"rusage": 3.0, "cgroup_outer": 2.9}, (3.0, "rusage", "at least")),
    ("a short job alone", {"rusage": 0.0011, "cgroup_outer": 0.0018}, (0.0011, "rusage", "exact")),
    ("a short job, a child unwaited for", {"rusage": 0.001, "cgroup_outer": 0.004}, (0.001, "rusage", "at least")),
    ("perf saw it all", {"perf": 3.0, "rusage": 0.1, "cgroup_outer": 9.0}, (3.0, "perf", "exact")),
    ("the bound alone is no figure", {"cgroup_outer": 9.0}, None),
]  # fmt: skip


@pytest.mark.parametrize(("by_source", "expected"), [case[1:] for case in BOUNDED], ids=[case[0] for case in BOUNDED])
def test_cpu_seconds_are_exact_where_the_cgroup_around_the_job_used_no_more(
    by_source: dict[str, float], expected: tuple[float, str, str] | None
) -> None:
    figure = usage(totals(**{f"{name}_cpu_seconds": one for name, one in by_source.items()}), DESCRIBED, 20.0).get(
        "cpu_seconds"
    )
    seen = figure and (figure["value"], figure["from"].removesuffix("_cpu_seconds"), figure["quality"])
    assert expected == seen


PARTIAL = {**DESCRIBED, "perf_cpu_seconds": {"quality": "at least"}, "perf_cpu_percent": {"quality": "at least"}}


@pytest.mark.parametrize(
    ("by_source", "expected"),
    [
        # The job ended soon after perf was stopped: still it is no total.
        ({"perf": 0.20, "rusage": 0.24}, (0.24, "rusage", "at least")),
        ({"perf": 0.20, "rusage": 0.24, "cgroup_outer": 0.241}, (0.24, "rusage", "exact")),
        ({"perf": 0.20, "rusage": 5.0, "cgroup_outer": 5.001}, (5.0, "rusage", "exact")),
        # Children that nobody waited for, until it was stopped.
        ({"perf": 2.0, "rusage": 0.1, "cgroup_outer": 3.0}, (2.0, "perf", "at least")),
        ({"perf": 2.0, "rusage": 0.1, "cgroup_outer": 2.001}, (2.0, "perf", "exact")),
        ({"perf": 0.2, "proc": 4.0}, (4.0, "proc", "at least")),
    ],
)
def test_what_perf_counted_until_it_was_stopped_is_no_total(
    by_source: dict[str, float], expected: tuple[float, str, str]
) -> None:
    figure = usage(totals(**{f"{name}_cpu_seconds": one for name, one in by_source.items()}), PARTIAL, 20.0)[
        "cpu_seconds"
    ]
    assert expected == (figure["value"], figure["from"].removesuffix("_cpu_seconds"), figure["quality"])


def test_a_bound_that_a_process_left_proves_nothing() -> None:
    described = {**DESCRIBED, "cgroup_outer_cpu_seconds": {"quality": "at least"}}
    figure = usage(totals(rusage_cpu_seconds=3.0, cgroup_outer_cpu_seconds=3.0), described, 20.0)["cpu_seconds"]
    assert "at least" == figure["quality"]


def test_processes_that_go_on_unseen_make_cpu_seconds_at_least_that_whatever_the_bound() -> None:
    summary = totals(rusage_cpu_seconds=3.0, cgroup_outer_cpu_seconds=3.0)
    assert "at least" == usage(summary, DESCRIBED, 20.0, complete=False)["cpu_seconds"]["quality"]


def test_a_peak_rate_of_perf_until_it_was_stopped_makes_way_for_one_of_the_whole_run() -> None:
    rates = {
        key: {"unit": "percent", "kind": "gauge", "peak": peak, "mean": peak, "p95": peak}
        for key, peak in (("perf_cpu_percent", 20.0), ("proc_cpu_percent", 90.0))
    }
    assert "perf_cpu_percent" == usage(rates, DESCRIBED, 10.0)["cpu_peak_percent"]["from"]
    assert "proc_cpu_percent" == usage(rates, PARTIAL, 10.0)["cpu_peak_percent"]["from"]


def test_a_figure_has_the_quality_of_its_source_or_is_sampled_where_none_is_given() -> None:
    qualities = [
        usage(totals(**{key: 1.0}), DESCRIBED, 1.0)["cpu_seconds"]["quality"]
        for key in ("perf_cpu_seconds", "proc_cpu_seconds", "ps_cpu_seconds")
    ]
    assert ["exact", "at least", "sampled"] == qualities


def test_the_mean_rate_is_cpu_time_over_wall_time() -> None:
    figure = usage(totals(perf_cpu_seconds=30.0), DESCRIBED, 20.0)["cpu_mean_percent"]
    assert {"value": 150.0, "from": "perf_cpu_seconds", "quality": "exact"} == figure


def test_the_peak_rate_is_never_below_the_mean_and_then_only_at_least_that() -> None:
    rate = {"proc_cpu_percent": {"unit": "percent", "kind": "gauge", "peak": 90.0, "mean": 50.0, "p95": 90.0}}
    long = usage(totals(perf_cpu_seconds=5.0) | rate, DESCRIBED, 10.0)["cpu_peak_percent"]
    short = usage(totals(perf_cpu_seconds=15.0) | rate, DESCRIBED, 10.0)["cpu_peak_percent"]
    without = usage(totals(perf_cpu_seconds=15.0), DESCRIBED, 10.0)["cpu_peak_percent"]
    assert (90.0, "proc_cpu_percent", "sampled") == (long["value"], long["from"], long["quality"])
    assert (150.0, "perf_cpu_seconds", "at least") == (short["value"], short["from"], short["quality"])
    assert short == without


def test_without_wall_time_there_is_no_rate() -> None:
    assert {"cpu_seconds"} == set(usage(totals(perf_cpu_seconds=0.1), DESCRIBED, 0.0))


def test_what_was_not_measured_is_absent_and_not_zero() -> None:
    assert {} == usage({}, {}, 10.0)
    assert {"cpu_seconds", "cpu_mean_percent", "cpu_peak_percent"} == set(
        usage(totals(perf_cpu_seconds=1.0), DESCRIBED, 10.0)
    )
    assert {"read_bytes": {"value": 0, "from": "proc_read_bytes", "quality": "sampled"}} == usage(
        totals(proc_read_bytes=0), {}, 10.0
    )


def test_disk_processes_and_mean_memory_come_from_their_first_source() -> None:
    summary = totals(proc_read_bytes=1, cgroup_read_bytes=2, cgroup_write_bytes=3) | peaks(
        proc_processes=7, cgroup_held=100, proc_pss_total=90
    )
    figures = usage(summary, DESCRIBED, 1.0)
    chosen = {name: (figures[name]["value"], figures[name]["from"]) for name in figures if name != "memory_peak_bytes"}
    assert {
        "read_bytes": (1, "proc_read_bytes"),
        "write_bytes": (3, "cgroup_write_bytes"),
        "processes_peak": (7, "proc_processes"),
        "memory_mean_bytes": (50, "cgroup_held"),
    } == chosen


def test_of_a_job_that_goes_on_unseen_every_total_is_at_least_that() -> None:
    summary = totals(perf_cpu_seconds=5.0, proc_read_bytes=1, proc_write_bytes=2) | peaks(
        cgroup_mem_peak=100, cgroup_held=99, cgroup_file=0, proc_processes=2, cgroup_cpu_percent=400
    )
    complete, incomplete = (usage(summary, DESCRIBED, 10.0, complete=is_complete) for is_complete in (True, False))
    totals_of_it = ("cpu_seconds", "cpu_mean_percent", "memory_peak_bytes", "read_bytes", "write_bytes")
    assert ["at least"] * 5 == [incomplete[name]["quality"] for name in totals_of_it]
    assert ["exact"] * 3 == [complete[name]["quality"] for name in totals_of_it[:3]]
    # The figures are the same; levels that were seen are as they were seen.
    assert {name: figure["value"] for name, figure in complete.items()} == {
        name: figure["value"] for name, figure in incomplete.items()
    }
    assert ("sampled", "sampled") == (
        incomplete["cpu_peak_percent"]["quality"],
        incomplete["memory_mean_bytes"]["quality"],
    )
