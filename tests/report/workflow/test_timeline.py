"""The timeline of a workflow."""

from __future__ import annotations

import re

import pytest

from jobmeter.report.workflow.job_entry import AttemptEntry, JobEntry, ResourceUsage
from jobmeter.report.workflow.job_table import table_html
from jobmeter.report.workflow.timeline import Bar, lanes, timeline_html

NOTHING = ResourceUsage("bytes", None, None, None, False, "")


def job(number: int, *spans: tuple[float, float], critical: bool = False, name: str = "", over: str = "") -> JobEntry:
    """A job with an attempt for each (begin, seconds)."""
    attempts = tuple(
        AttemptEntry(f"run{number}{n}", n, "completed", "completed", begin, seconds)
        for n, (begin, seconds) in enumerate(spans, start=1)
    )
    memory = ResourceUsage("bytes", 2.0**30, 2.0**31, 2.0**29, False, over) if over else NOTHING
    return JobEntry(
        number, name or f"job{number}", "step", "completed", "", "true", attempts, NOTHING, memory, NOTHING, critical
    )


def test_jobs_that_follow_each_other_share_a_row_and_those_of_one_time_do_not() -> None:
    jobs = [job(1, (0, 10)), job(2, (0, 5)), job(3, (5, 5)), job(4, (7, 1)), job(5, (10, 1))]
    rows = lanes([Bar(each, each.attempts[0]) for each in jobs])
    assert [[1], [2, 3], [4, 5]] == [sorted(bar.job.number for bar in row) for row in rows]


def test_a_bar_is_where_the_job_ran_and_says_when() -> None:
    made = timeline_html([job(1, (0, 30)), job(2, (30, 60), critical=True)], 90.0)
    assert 'class="good" href="#job-1" style="left:0.000%;width:33.333%"' in made
    assert 'class="good critical" href="#job-2" style="left:33.333%;width:66.667%"' in made
    assert "1m 0s, from 30 s on" in made


def test_every_attempt_has_a_bar() -> None:
    made = timeline_html([job(1, (0, 1), (2, 3))], 5.0)
    assert 2 == made.count('href="#job-1"')
    assert "attempt 2" in made


@pytest.mark.parametrize(("count", "named"), [(40, True), (41, False)])
def test_few_jobs_have_a_row_each_and_many_share(count: int, named: bool) -> None:
    made = timeline_html([job(n, (float(n), 1.0)) for n in range(count)], float(count))
    assert named == ('class="who" title="job7"' in made)
    assert count == made.count("<a class=")
    assert (count if named else 1) == made.count('<div class="row">')


@pytest.mark.parametrize("seconds", [0.003, 0.9, 7.0, 59.0, 4000.0, 1e6])
def test_the_axis_has_a_few_round_times(seconds: float) -> None:
    times = re.findall(r"<b>([\d.]+) (ms|s|min|h|d)</b>", timeline_html([job(1, (0, seconds))], seconds))
    assert 3 <= len(times) <= 8
    assert "0" == times[0][0]
    assert all(len(number) <= 4 for number, _ in times)


def test_a_workflow_in_which_nothing_ran_has_no_timeline() -> None:
    assert "No job was run." in timeline_html([job(1)], 0.0)


def test_nothing_in_a_name_is_taken_for_markup() -> None:
    bad = job(1, (0, 1), name='"><script>alert(1)</script>')
    for made in (timeline_html([bad], 1.0), table_html([bad], [])):
        assert "<script>" not in made


def test_over_use_is_marked_with_its_amount() -> None:
    made = table_html([job(1, (0, 1), over="100 % more than requested")], ["run11"])
    assert 'class="job over"' in made
    assert 'title="100 % more than requested">▲' in made
    assert "2 GiB" in made
    assert "of 1 GiB" in made


def test_of_very_many_jobs_the_first_are_shown() -> None:
    made = table_html([job(n, (0, 1)) for n in range(1000)], [])
    assert 950 == made.count('class="job hidden"')
