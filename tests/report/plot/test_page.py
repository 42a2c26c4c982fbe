"""The page of plots: what it holds. What a person sees of it is in `tests/report/page/test_browser.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobmeter.errors import UsageError
from jobmeter.report.plot.bars import bars_html
from jobmeter.report.plot.curve_data import run_data
from jobmeter.report.plot.labels import label
from jobmeter.report.plot.page import page
from jobmeter.report.plot.series import Curve, JobCurves, Panel
from tests.report.plot.drawn import job

MIB = 2**20


def data_of(made: str) -> Any:
    return json.loads(made.partition('id="data">')[2].partition("</script>")[0])


def test_a_page_has_the_curves_of_every_run_and_a_place_for_each() -> None:
    made = page([job("aaaa"), job("bbbb")])
    assert ["aaaa", "bbbb"] == [run["id"] for run in data_of(made)["runs"]]
    assert ["CPU", "Memory", "Processes"] == [panel["title"] for panel in data_of(made)["runs"][0]["panels"]]
    for place in ('data-run="aaaa"', 'data-run="bbbb"', 'data-overview="CPU"', 'data-overview="Memory"'):
        assert 1 == made.count(place)


def test_what_was_requested_is_with_its_curve_only_where_it_was() -> None:
    panels = run_data(job(requirement_cpus=2.0))["panels"]
    assert [200.0, None, None] == [panel.get("requested") for panel in panels]


def panel(times: list[float], mean: list[float | None], unit: str = "bytes") -> Panel:
    return Panel("Memory", Curve("key", unit, "Help.", False, times, mean, mean), 1)


def test_points_that_a_step_curve_does_not_need_are_left_out() -> None:
    flat = [5.0 * MIB] * 100
    run = JobCurves({"id": "aaaa", "name": "x"}, [panel([0.1 * n for n in range(101)], [*flat, 7.0 * MIB])])
    data = run_data(run)["panels"][0]
    assert ([0, 9.9, 10], [5, 5, 7], MIB) == (data["t"], data["mean"], data["by"])


def test_values_have_five_digits_and_gaps_stay_gaps() -> None:
    run = JobCurves({"id": "aaaa", "name": "x"}, [panel([0.0, 1.23456789, 2.0], [123.456789, None, 0.000123456], "x")])
    data = run_data(run)["panels"][0]
    assert ([0, 1.2346, 2], [123.46, None, 0.00012346]) == (data["t"], data["mean"])


def test_runs_without_curves_are_in_the_summary() -> None:
    lone = JobCurves({"id": "bbbb2222", "name": "short", "status": "completed", "memory_peak_bytes": 7 * MIB}, [])
    made = page([job(), lone])
    assert "short bbbb" in made
    assert ">7 MiB</td>" in made
    assert 'title="peak 7 MiB"' in made


def test_bars_are_to_one_scale_and_say_their_amounts() -> None:
    made = bars_html(
        [
            job("aaaa", memory_peak_bytes=100 * MIB, memory_mean_bytes=50 * MIB, requirement_memory_bytes=200 * MIB),
            job("bbbb", memory_peak_bytes=20 * MIB),
        ]
    )
    assert 'title="peak 100 MiB, mean 50 MiB, requested 200 MiB"' in made
    for share in ("width:50.00%", "width:25.00%", "left:100.00%", "width:10.00%"):
        assert share in made
    assert "<b>100 MiB</b> of 200 MiB" in made


def test_a_page_holds_whatever_a_job_is_called() -> None:
    name = "</script><script>alert(1)</script>"
    made = page([job(name=name), job("bbbb", name=name)])
    assert "alert(1)</script>" not in made
    assert ["aaaa1111", "bbbb"] == [run["id"] for run in data_of(made)["runs"]]


def test_a_page_names_no_other_place_to_load_from() -> None:
    made = page([job()])
    assert "<script src" not in made
    assert "<link" not in made
    assert 1 == made.count("plotly.js v")
    assert "default-src 'none'" in made


def test_names_are_shortened_in_the_middle_so_that_jobs_of_a_sweep_stay_apart() -> None:
    names = [f"simulate_the_whole_ocean_with_a_resolution_of_{size}_km" for size in (10, 20)]
    first, second = (label(job(name=name)).removesuffix(" aaaa") for name in names)
    assert first != second
    assert len(first) <= 40


def test_a_run_of_unknown_start_has_no_time_of_day() -> None:
    with pytest.raises(UsageError, match="--clock: it is not known when run aaaa1111 started"):
        page([job(started=None)], of_day=True)


@pytest.mark.parametrize("started", ["", None])
def test_a_start_that_is_not_known_is_left_out(started: str | None) -> None:
    assert "<p>run aaaa1111 · started 2026-01-31 12:00:00 UTC · completed</p>" in page([job()])
    assert "<p>run aaaa1111 · completed</p>" in page([job(started=started)])
