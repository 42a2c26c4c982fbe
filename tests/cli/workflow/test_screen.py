from __future__ import annotations

from typing import Any

import pytest

from jobmeter.cli.workflow.screen import clock, screen_lines
from jobmeter.model import Requirement
from jobmeter.workflow.progress import JobView, View

GIB = 2**30


def running(name: str = "train", attempt: int = 1, **requirement: Any) -> JobView:
    return JobView(name, attempt, 80.0, 98.0, 1.5 * GIB, Requirement(**requirement))


def view(*jobs: JobView, left: float | None = None, stopping: bool = False, **counts: int) -> View:
    all_counts = {"completed": 2, "running": len(jobs), "waiting": 5, **counts}
    return View(all_counts, sum(all_counts.values()), 65.0, left, list(jobs), stopping)


def shown(seen: View, width: int = 80, height: int = 24, name: str = "demo") -> list[str]:
    return [line.plain.rstrip() for line in screen_lines(name, seen, width, height)]


def assert_fits(seen: View, width: int = 80, height: int = 24, name: str = "demo") -> None:
    lines = screen_lines(name, seen, width, height)
    assert [] == [line.plain for line in lines if line.cell_len > width]
    assert len(lines) < max(height, 2)


def test_the_head_shows_the_progress() -> None:
    lines = shown(view(left=130.0, failed=1))
    assert ["demo: 8 jobs", "2 completed  0 running  5 waiting  1 failed"] == lines[:2]
    assert lines[2].endswith("━  1:05, about 2:10 left")


def test_the_time_left_is_not_shown_while_it_is_not_known() -> None:
    assert shown(view())[2].endswith("━  1:05")


def test_a_run_that_is_being_stopped_says_so() -> None:
    assert "1:05, ending the jobs; Ctrl-C again: at once" in shown(view(stopping=True))[2]


def test_a_running_job_is_a_line_with_its_shares() -> None:
    lines = shown(view(running(cpus=1, memory_bytes=2 * GIB, runtime_seconds=100.0)))
    assert ["running", "time", "share", "CPU", "share", "memory", "share"] == lines[3].split()
    assert ["train", "1:20", "80%", "98", "%", "98%", "1.5", "GiB", "75%"] == lines[4].split()


def test_attempts_are_shown_once_there_is_a_second() -> None:
    assert "try" not in shown(view(running()))[3]
    lines = shown(view(running(), running("test", attempt=2)))
    assert "try" in lines[3]
    assert ["test", "2", "1:20"] == lines[5].split()[:3]


def test_what_is_over_stands_out() -> None:
    lines = screen_lines("demo", view(running(memory_bytes=GIB)), 80, 24)
    assert any(span.style == "red" and "150%" in lines[4].plain[span.start : span.end] for span in lines[4].spans)


def test_more_jobs_than_fit_are_counted() -> None:
    lines = shown(view(*(running(f"job{number}") for number in range(30))), height=12)
    assert 11 == len(lines)
    assert ["job0", "job5"] == [lines[4].split()[0], lines[9].split()[0]]
    assert "and 24 more" == lines[10]


@pytest.mark.parametrize("count", range(12))
@pytest.mark.parametrize("height", range(1, 15))
def test_it_fits_a_terminal_of_any_height(count: int, height: int) -> None:
    assert_fits(view(*(running(f"job{number}") for number in range(count))), height=height)


@pytest.mark.parametrize("width", [1, 5, 10, 20, 30, 40, 60, 80, 200])
def test_it_fits_a_terminal_of_any_width(width: int) -> None:
    jobs = running("a name that is longer than any terminal is wide, or nearly so", 2, cpus=1), running("日本語" * 9)
    assert_fits(view(*jobs, left=360000.0, failed=3, blocked=4), width=width, name="a workflow of a long name" * 3)


def test_on_a_narrow_terminal_names_and_figures_stay() -> None:
    lines = shown(view(running("train_001", cpus=1, memory_bytes=2 * GIB)), width=40)
    assert ["train_001", "1:20", "98", "%", "1.5", "GiB"] == lines[-1].split()


def test_names_are_shown_as_they_are() -> None:
    assert shown(view(running("[red]x[/]")), name="[bold]y")[4].startswith("[red]x[/] ")
    assert shown(view(), name="[bold]y")[0].startswith("[bold]y: ")


def test_nothing_in_a_name_moves_the_cursor() -> None:
    lines = shown(view(running("a\x1b[2Jb\nc")), name="x\ry")
    assert lines[0].startswith(r"x\ry: ")
    assert lines[4].startswith(r"a\x1b[2Jb\nc ")


@pytest.mark.parametrize(("seconds", "words"), [(0.9, "0:00"), (65, "1:05"), (3599, "59:59"), (90061, "25:01:01")])
def test_times_read_as_on_a_clock(seconds: float, words: str) -> None:
    assert words == clock(seconds)
