"""Figures: valid for plotly, with units that people read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobmeter.report.plot.bars import summary_figure
from jobmeter.report.plot.figures import Figure, job_figure, overview_figure
from jobmeter.report.plot.page import page
from jobmeter.report.plot.series import CPU, MEMORY, JobCurves, job_curves
from tests.runs import journal, windows


def job(run_id: str = "aaaa1111", name: str = "train", megabytes: float = 1500.0, **row: Any) -> JobCurves:
    known = {"id": run_id, "name": name, "started": "2026-01-31T12:00:00.000Z", "status": "completed", **row}
    return job_curves(known, journal(windows(10, seconds=30.0, megabytes=megabytes)))


def figures() -> list[Figure]:
    jobs = [
        job("aaaa", requirement_cpus=2.0, requirement_memory_bytes=2**31, cpu_peak_percent=95.0, cpu_mean_percent=80.0),
        job("bbbb", megabytes=10.0, memory_peak_bytes=10 * 2**20, memory_mean_bytes=5 * 2**20),
    ]
    found = [job_figure(jobs[0]), job_figure(jobs[0], of_day=True), summary_figure(jobs)]
    overviews = [overview_figure(jobs, heading, of_day) for heading in (CPU, MEMORY) for of_day in (False, True)]
    return found + [figure for figure in overviews if figure is not None]


@pytest.mark.parametrize("figure", figures())
def test_plotly_knows_every_property_of_a_figure(figure: Figure) -> None:
    from plotly.graph_objects import Figure as Checked

    assert len(figure["data"]) == len(Checked(figure).data)


def test_axes_have_units_that_suit_the_values() -> None:
    layout = job_figure(job())["layout"]
    assert "% (100 = one core)" == layout["yaxis"]["title"]["text"]
    assert "GiB" == layout["yaxis2"]["title"]["text"]
    assert "number" == layout["yaxis3"]["title"]["text"]
    assert "time since the start (min)" == layout["xaxis"]["title"]["text"]
    assert "MiB" == job_figure(job(megabytes=10.0))["layout"]["yaxis2"]["title"]["text"]


def test_hover_texts_have_values_with_units() -> None:
    traces = {trace["name"]: trace for trace in job_figure(job())["data"]}
    assert "95 %" == traces["CPU, peak"]["text"][-1]
    assert "1.46 GiB" == traces["Memory"]["text"][-1]


def test_headings_come_from_the_descriptions_in_the_journal() -> None:
    texts = [annotation["text"] for annotation in job_figure(job())["layout"]["annotations"]]
    assert "proc_rss_total: Resident memory." in texts[1]


def test_what_was_requested_is_a_line_only_where_it_was() -> None:
    assert not any("requested" in trace["name"] for trace in job_figure(job())["data"])
    lines = [trace for trace in job_figure(job(requirement_cpus=2.0))["data"] if "requested" in trace["name"]]
    assert [[200.0, 200.0]] == [trace["y"] for trace in lines]


def test_runs_without_a_quantity_have_no_overview_of_it() -> None:
    empty = JobCurves({"id": "aaaa", "name": "x"}, [])
    assert overview_figure([empty], CPU) is None


def test_a_page_holds_whatever_a_job_is_called() -> None:
    name = "</script><script>alert(1)</script>"
    made = page([job(name=name), job("bbbb", name=name)])
    assert "alert(1)</script>" not in made
    content = made.partition('id="figures">')[2].partition("</script>")[0]
    assert {"CPU", "Memory", "aaaa1111", "bbbb"} <= set(json.loads(content))


def test_a_page_names_no_other_place_to_load_from() -> None:
    made = page([job()])
    assert "<script src" not in made
    assert "<link" not in made
    assert 1 == made.count("plotly.js v")
