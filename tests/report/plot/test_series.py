"""The curves of a run, from its journal."""

from __future__ import annotations

import pytest

from jobmeter.errors import UsageError
from jobmeter.journal.reader import JournalWindow
from jobmeter.report.plot.series import check_drawable, distinguishing_length, job_curves
from tests.runs import DESCRIBED, journal, windows

ROW = {"id": "aaaa", "name": "train", "started": "2026-01-31T12:00:00.000Z", "requirement_cpus": 2.0}


def test_cpu_memory_and_processes_are_drawn_with_their_own_descriptions() -> None:
    job = job_curves(ROW, journal(windows()))
    assert ["CPU", "Memory", "Processes"] == [panel.title for panel in job.panels]
    memory = job.panels[1].curve
    assert ("proc_rss_total", "bytes", "Resident memory.") == (memory.key, memory.unit, memory.help)
    assert 100 * 2**20 == memory.highest


def test_what_was_asked_for_is_in_the_unit_of_the_curve() -> None:
    job = job_curves(ROW, journal(windows()))
    assert [200.0, None, None] == [panel.requested for panel in job.panels]


def test_a_value_holds_from_the_end_of_the_window_before() -> None:
    curve = job_curves(ROW, journal(windows(2, seconds=10.0))).panels[0].curve
    assert [0.0, 10.0, 20.0] == curve.times
    assert [80.0, 80.0, 80.0] == curve.mean
    assert [95.0, 95.0, 95.0] == curve.peak


def cpu_windows(*values: float | None) -> list[JournalWindow]:
    return [
        JournalWindow(float(number + 1), 1, {} if value is None else {"proc_cpu_percent": value})
        for number, value in enumerate(values)
    ]


def test_a_rate_that_came_late_stands_for_the_time_since_the_one_before() -> None:
    curve = job_curves(ROW, journal(cpu_windows(10, None, 30))).panels[0].curve
    assert ([0.0, 1.0, 3.0], [10, 10, 30]) == (curve.times, curve.mean)


def test_a_long_silence_is_a_gap() -> None:
    curve = job_curves(ROW, journal(cpu_windows(10, None, None, None, None, 30))).panels[0].curve
    assert [0.0, 1.0, 5.0, 5.0, 6.0] == curve.times
    assert [10, 10, None, 30, 30] == curve.mean


def test_a_counter_is_drawn_as_a_rate() -> None:
    curve = job_curves(ROW, journal(windows(3, seconds=2.0)), ["proc_read_bytes"]).panels[0].curve
    assert (True, "bytes") == (curve.rate, curve.unit)
    assert [2**20] * 4 == curve.mean


def test_cpu_is_drawn_from_its_counter_where_no_rate_was_kept() -> None:
    described = {"proc_cpu_seconds": {**DESCRIBED["proc_read_bytes"], "unit": "seconds"}}
    cells = [JournalWindow(10.0 * n, 1, {"proc_cpu_seconds": 15.0}) for n in (1, 2)]
    panel = job_curves(ROW, journal(cells, measurements=described)).panels[0]
    assert ("CPU", "percent", [150.0] * 3) == (panel.title, panel.curve.unit, panel.curve.mean)


def test_a_source_that_is_read_rarely_makes_no_curve() -> None:
    described = {**DESCRIBED, "proc_pss_total": DESCRIBED["proc_rss_total"]}
    cells = windows(10)
    cells[3].cells["proc_pss_total"] = 5
    job = job_curves(ROW, journal(cells, measurements=described))
    assert "proc_rss_total" == job.panels[1].curve.key


def test_a_source_that_was_stopped_makes_way_for_one_that_goes_to_the_end() -> None:
    described = {**DESCRIBED, "perf_cpu_percent": DESCRIBED["proc_cpu_percent"]}
    cells = cpu_windows(*[50.0] * 10)
    for window in cells[:6]:
        window.cells["perf_cpu_percent"] = 50.0
    assert "proc_cpu_percent" == job_curves(ROW, journal(cells, measurements=described)).panels[0].curve.key
    for window in cells:
        window.cells["perf_cpu_percent"] = 50.0
    assert "perf_cpu_percent" == job_curves(ROW, journal(cells, measurements=described)).panels[0].curve.key


def test_hundreds_of_thousands_of_points_become_few_and_the_peak_is_among_them() -> None:
    cells = windows(200_000)
    cells[123_456].cells["proc_cpu_percent"] = [777.0, 80.0]
    curve = job_curves(ROW, journal(cells), most=2_000).panels[0].curve
    assert len(curve.times) <= 2_000
    assert 777.0 == curve.highest


def test_a_measurement_that_the_run_does_not_have_is_told() -> None:
    with pytest.raises(UsageError, match=r"nvml_power: not measured in run aaaa\. It has: proc_cpu_percent"):
        check_drawable(["nvml_power"], journal(windows()))


def test_ids_are_cut_where_they_still_tell_runs_apart() -> None:
    assert 4 == distinguishing_length(["abcdefgh"])
    assert 4 == distinguishing_length(["abcdefgh", "abcxefgh"])
    assert 8 == distinguishing_length(["slurm-17", "slurm-18"])
