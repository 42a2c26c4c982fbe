"""The curves of a run, from its journal."""

from __future__ import annotations

import pytest

from jobmeter.errors import UsageError
from jobmeter.journal.reader import JournalWindow
from jobmeter.report.plot.labels import clock
from jobmeter.report.plot.series import choose_keys, distinguishing_length, job_curves, undrawn
from tests.runs import DESCRIBED, journal, windows

ROW = {"id": "aaaa", "name": "train", "started": "2026-01-31T12:00:00.000Z", "requirement_cpus": 2.0}


def test_cpu_memory_and_processes_are_drawn_with_their_own_descriptions() -> None:
    job = job_curves(ROW, journal(windows()))
    assert ["CPU", "Memory", "Processes"] == [panel.title for panel in job.panels]
    memory = job.panels[1].curve
    assert ("proc_rss_total", "bytes", "Resident memory.") == (memory.key, memory.unit, memory.help)
    assert 100 * 2**20 == memory.highest


def test_the_request_is_in_the_unit_of_the_curve() -> None:
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


def test_globs_mean_the_measurements_of_any_of_the_runs() -> None:
    chosen = choose_keys(["proc_r*", "proc_processes", "proc_read_bytes"], [journal(windows())])
    assert (["proc_rss_total", "proc_read_bytes", "proc_processes"], []) == chosen


def test_a_measurement_that_no_run_has_is_refused() -> None:
    with pytest.raises(UsageError, match=r"nvml_power: not measured in run aaaa\. There are: proc_cpu_percent"):
        choose_keys(["nvml_power"], [journal(windows())])
    with pytest.raises(UsageError, match=r"nvml_\*: not measured in any of the 2 runs"):
        choose_keys(["nvml_*"], [journal(windows())] * 2)


def test_texts_are_named_and_make_no_curve() -> None:
    described = {**DESCRIBED, "proc_cmd": {**DESCRIBED["proc_processes"], "kind": "label", "unit": "text"}}
    texts = journal(windows(), measurements=described)
    assert ["proc_cmd: not drawn: a text makes no curve"] == choose_keys(["proc_*"], [texts]).notes
    with pytest.raises(UsageError, match="proc_cmd: not drawn"):
        choose_keys(["proc_cmd"], [texts])


def test_a_key_that_some_runs_have_no_values_of_is_named() -> None:
    jobs = [
        job_curves({**ROW, "id": run}, journal(cells), ["proc_cpu_percent"])
        for run, cells in (("a", windows()), ("b", []))
    ]
    assert ["proc_cpu_percent: no values over time in b"] == undrawn(["proc_cpu_percent"], jobs)


MANY = {f"other{number}": 1 for number in range(9)}


def fine_windows() -> list[JournalWindow]:
    """Windows of 0.1 s with a level, and every second one with everything."""
    cells: list[JournalWindow] = []
    for number in range(1, 31):
        whole = {"proc_read_bytes": 2**20, **MANY} if number % 10 == 0 else {}
        cells.append(JournalWindow(number / 10, 1, {"proc_rss_total": number, **whole}))
    return cells


def test_what_fine_windows_lack_is_no_gap_and_its_rate_is_over_all_of_them() -> None:
    read, memory = (
        panel.curve for panel in job_curves(ROW, journal(fine_windows()), ["proc_read_bytes", "proc_rss_total"]).panels
    )
    assert ([0.0, 1.0, 2.0, 3.0], [2**20] * 4) == (read.times, read.mean)
    assert 31 == len(memory.times)


def test_more_cpus_than_there_are_is_spread_over_the_time_before() -> None:
    described = {"cgroup_cpu_seconds": {**DESCRIBED["proc_read_bytes"], "unit": "seconds"}}
    cells = [
        JournalWindow(at, 1, {"cgroup_cpu_seconds": used})
        for at, used in ((0.1, 0.1), (0.2, 0.0), (0.22, 0.12), (0.3, 0.08))
    ]
    run = journal(cells, measurements=described)
    run.header["host"] = {"name": "here", "cpus": 2}
    curve = job_curves(ROW, run).panels[0].curve
    assert [0.0, 0.1, 0.22, 0.3] == curve.times
    assert [100.0, 100.0, 100.0, 100.0] == pytest.approx(curve.mean)


def test_a_run_of_a_millisecond_is_drawn() -> None:
    described = {"cgroup_cpu_seconds": {**DESCRIBED["proc_read_bytes"], "unit": "seconds"}}
    run = journal([JournalWindow(0.0012, 1, {"cgroup_cpu_seconds": 0.0009})], measurements=described)
    job = job_curves(ROW, run)
    assert ([0.0, 0.0012], [75.0, 75.0]) == (job.panels[0].curve.times, job.panels[0].curve.mean)
    assert ("time since the start (ms)", 0.001) == clock([job])[:2]


def test_ids_are_cut_where_they_still_distinguish_runs() -> None:
    assert 4 == distinguishing_length(["abcdefgh"])
    assert 4 == distinguishing_length(["abcdefgh", "abcxefgh"])
    assert 8 == distinguishing_length(["slurm-17", "slurm-18"])
