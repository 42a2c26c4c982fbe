"""What `check` prints, to the letter."""

from __future__ import annotations

import pytest

from jobmeter.analyse.check import CheckedJob, Failure, JobVerdict, Tally
from jobmeter.analyse.overuse import Verdict
from jobmeter.analyse.resource import CPU, MEMORY, RUNTIME, Resource
from jobmeter.analyse.waste import Waste
from jobmeter.report.check import cells, failure_lines, headline, opportunity_text, signed_percent, style

GIB = 2**30


def line(
    resource: Resource, specified: float, used: float, *, at_least: bool = False, cause: str | None = None
) -> JobVerdict:
    job = CheckedJob(15, "train_model", "train_model", 1, "run15")
    return JobVerdict(job, Verdict(resource, specified, used, at_least, True, cause))


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (line(MEMORY, 8 * GIB, 10.5 * GIB), "15 · train_model · Memory · 8 GiB · 10.5 GiB · +31.3 %"),
        (line(CPU, 800, 950.5), "15 · train_model · CPU · 800 % (8 cores) · 950 % · +18.8 %"),
        (line(CPU, 100, 50), "15 · train_model · CPU · 100 % (1 core) · 50 % · -50.0 %"),
        (line(RUNTIME, 7200, 9900.0), "15 · train_model · Runtime · 2h 0m 0s · 2h 45m 0s · +37.5 %"),
        (line(MEMORY, 8 * GIB, 10.5 * GIB, at_least=True), "15 · train_model · Memory · 8 GiB · ≥ 10.5 GiB · +31.3 %"),
        (
            line(MEMORY, 8 * GIB, 8 * GIB, at_least=True, cause="out of memory"),
            "15 · train_model · Memory · 8 GiB · ≥ 8 GiB · out of memory",
        ),
    ],
)
def test_a_line_shows_what_was_requested_what_was_used_and_how_much_over(verdict: JobVerdict, expected: str) -> None:
    assert expected == " · ".join(cells(verdict))


def test_a_later_attempt_is_marked() -> None:
    again = line(MEMORY, 1, 2)._replace(job=CheckedJob(15, "train_model", "train_model", 2, "run15b"))
    assert "train_model (attempt 2)" == cells(again)[1]


@pytest.mark.parametrize(
    ("value", "expected"), [(31.25, "+31.3 %"), (-87.25, "-87.3 %"), (0.0, "+0.0 %"), (-0.01, "+0.0 %")]
)
def test_half_a_tenth_of_a_percent_is_rounded_away_from_zero(value: float, expected: str) -> None:
    assert expected == signed_percent(value)


def test_the_headline_counts_jobs_and_not_lines() -> None:
    two = [line(MEMORY, 1, 2), line(RUNTIME, 1, 2)]
    assert "1 of 14 jobs used more than it requested" == headline(two, Tally(14))
    other = line(MEMORY, 1, 2)._replace(job=CheckedJob(3, "a", "a", 1, "run3"))
    assert "2 of 14 jobs used more than they requested" == headline([*two, other], Tally(14))
    assert "All 14 jobs stayed within what they requested" == headline([], Tally(14))
    assert "The job stayed within what it requested" == headline([], Tally(1))
    assert "The job used more than it requested" == headline(two, Tally(1))


def test_a_job_without_a_request_is_not_said_to_have_stayed_within_it() -> None:
    assert "The job requested nothing" == headline([], Tally(1, requested_nothing=1))
    assert "None of 14 jobs requested anything" == headline([], Tally(14, requested_nothing=14))
    expected = "5 of 14 jobs stayed within what they requested; 9 requested nothing"
    assert expected == headline([], Tally(14, requested_nothing=9))


def test_jobs_that_still_run_are_reported_as_such() -> None:
    assert "The job is still running" == headline([], Tally(1, running=1))
    assert "All 2 jobs are still running" == headline([], Tally(2, running=2))
    assert "1 of 2 jobs stayed within what it requested; 1 is still running" == headline([], Tally(2, running=1))
    over = [line(MEMORY, 1, 2)]
    assert "1 of 3 jobs used more than it requested; 2 are still running" == headline(over, Tally(3, running=2))


def test_attempts_of_one_job_are_one_job_in_the_headline() -> None:
    first, second = (
        line(MEMORY, 1, 2)._replace(job=CheckedJob(15, "a", "a", attempt, f"run{attempt}", "flow", 1))
        for attempt in (1, 2)
    )
    assert "1 of 9 jobs used more than it requested" == headline([first, second], Tally(9))
    other_run = second._replace(job=second.job._replace(workflow_run=2))
    assert "2 of 9 jobs used more than they requested" == headline([first, other_run], Tally(9))


def test_failures_are_aligned() -> None:
    failures = [
        Failure(CheckedJob(9, "fetch", "fetch", 1, "a"), "failed", "x"),
        Failure(CheckedJob(10, "go", "go", 2, "b"), "lost", "y"),
    ]
    assert ["9   fetch           x", "10  go (attempt 2)  y"] == failure_lines(failures)


@pytest.mark.parametrize(
    ("content", "expected"), [("+31.3 %", "red"), ("out of memory", "red"), ("-5.0 %", ""), ("+0.0 %", "")]
)
def test_only_what_is_over_is_red(content: str, expected: str) -> None:
    assert expected == style("over_utilization", content)


def test_an_opportunity_says_what_it_would_free() -> None:
    memory = Waste("preprocess", MEMORY, 1, 8 * GIB, 1.2 * GIB, 6.5 * GIB, 6.5 / 6 * GIB)
    assert (
        "preprocess: requested 8 GiB, used 1.2 GiB at most: 6.5 GiB less would free 1.08 GiB-h a run"
        == opportunity_text(memory)
    )
    cpus = Waste("preprocess", CPU, 1, 8, 1.9, 6, 1.0)
    assert "preprocess: requested 8 CPUs, used 1.9 at most: 6 less would free 1 core-h a run" == opportunity_text(cpus)
