"""Statistics of groups, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from jobmeter.analyse.statistics import FIGURES, RunFigures, group, position, quantile, rates, spread, together

GIB = 2.0**30


def run(*values: float | str | None, name: str = "train", source: str = "jobmeter") -> RunFigures:
    """A run: its status, wall and CPU time, peak and mean of memory, and the CPUs that it requested."""
    names = ("status", "wall_seconds", "cpu_seconds", "memory_peak_bytes", "memory_mean_bytes", "requirement_cpus")
    figures = dict(zip(names, values))
    return name, source, *(figures.get(figure) for figure in FIGURES)


def test_quantiles_lie_between_values_as_numpy_has_them() -> None:
    # numpy.quantile([15, 20, 35, 40, 50], [0.5, 0.95, 0.4])
    ordered = [15.0, 20.0, 35.0, 40.0, 50.0]
    assert 35.0 == quantile(ordered, 0.5)
    assert pytest.approx(48.0) == quantile(ordered, 0.95)
    assert pytest.approx(29.0) == quantile(ordered, 0.4)
    assert pytest.approx((1, 0.6)) == position(5, 0.4)


def test_the_quantiles_of_one_value_are_that_value() -> None:
    assert {"p50": 7.0, "p95": 7.0, "max": 7.0} == spread([7.0])


def test_no_values_give_no_statistics() -> None:
    assert {} == spread([])


def test_a_group_is_described_by_counts_sums_and_efficiency() -> None:
    runs = [
        run("completed", 3600.0, 7200.0, 4 * GIB, 2 * GIB, 4.0),
        run("failed", 1800.0, 900.0, 8 * GIB, 4 * GIB, 1.0),
        run("running", None, None, None, None, 2.0),
        run("detached", None, None, None, None, 2.0),
    ]
    (statistics,) = group(runs)
    summary = rates(statistics.totals)
    assert 4 == summary["runs"]
    assert 0.5 == summary["success_rate"]  # those that run, or went on, have not yet succeeded or failed
    assert pytest.approx(2.25) == summary["core_hours"]
    assert pytest.approx(2.0 + 2.0) == summary["gb_hours"]
    assert pytest.approx(4.5) == summary["core_hours_asked"]
    assert pytest.approx(8100 / 16200) == summary["cpu_efficiency"]
    assert {"p50": 2700.0, "p95": 3510.0, "max": 3600.0} == pytest.approx(statistics.spreads["wall_seconds"])


def test_what_was_not_measured_is_absent() -> None:
    (statistics,) = group([run("completed", 10.0, name="old", source="slurm")])
    assert {"runs": 1, "success_rate": 1.0, "wall_hours": 10 / 3600} == rates(statistics.totals)
    assert ["wall_seconds"] == list(statistics.spreads)


def test_groups_of_most_runs_come_first_and_their_totals_add_up() -> None:
    one = run("completed", 1.0, 2.0, name="a")
    other = run("failed", 3.0, name="b")
    groups = group([one, other, other])
    assert ["b", "a"] == [statistics.group for statistics in groups]
    total = together([statistics.totals for statistics in groups])
    assert (3, 3, 1, 7.0, 2.0, None) == total[:6]


def test_of_no_groups_the_total_is_nothing() -> None:
    assert {"runs": 0} == rates(together([]))
