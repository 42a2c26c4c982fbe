from __future__ import annotations

import json
import math
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jobmeter.session.metrics import MetricFiles, append_metric, read_metrics


def test_values_of_a_log_become_a_curve_and_the_last_is_the_value(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    for seconds, loss in ((1.0, 0.9), (2.5, 0.4), (4.0, 0.5)):
        append_metric(log, "loss", loss, 1000 + seconds)
    append_metric(log, "size", 3, 1002)
    assert read_metrics(MetricFiles(log=log), 1000, 1005) == {
        "loss": {"value": 0.5, "seconds": [1.0, 2.5, 4.0], "values": [0.9, 0.4, 0.5]},
        "size": {"value": 3},
    }


def test_a_file_that_was_there_before_the_job_is_not_the_jobs(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(f'{{"loss": 0.25, "note": "text", "ok": true, "far": 1e400, "whole": {"9" * 400}}}')
    files = MetricFiles(file=str(path))
    assert {"loss": {"value": 0.25}} == read_metrics(files, 990, 1001)
    before = files.state()
    assert {} == read_metrics(files, 1010, 1020, before)
    path.write_text('{"loss": 0.5}')
    assert {"loss": {"value": 0.5}} == read_metrics(files, 1010, 1020, before)


def test_many_values_are_thinned_and_first_and_last_are_there(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(["m", number, 1000 + number]) + "\n" for number in range(10_000)))
    metric = read_metrics(MetricFiles(log=str(log)), 1000, 20_000)["m"]
    assert 500 == len(metric["values"]) == len(metric["seconds"])
    assert (0, 9999, 9999) == (metric["values"][0], metric["values"][-1], metric["value"])


def test_of_a_very_long_log_the_last_value_is_the_last(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as file:
        for number in range(300_000):
            file.write(json.dumps(["m", number, 1000 + number]) + "\n")
    append_metric(str(log), "late", 7, 2000)
    assert log.stat().st_size > 5 << 20
    metrics = read_metrics(MetricFiles(log=str(log)), 1000, 400_000)
    assert (0, 299_999, 7) == (metrics["m"]["values"][0], metrics["m"]["value"], metrics["late"]["value"])


def test_what_is_no_file_of_metrics_is_as_none(tmp_path: Path) -> None:
    fifo, folder = tmp_path / "fifo", tmp_path / "folder"
    os.mkfifo(fifo)
    folder.mkdir()
    for path in (fifo, folder, tmp_path / "gone", Path("/dev/zero")):
        assert {} == read_metrics(MetricFiles(str(path), str(path)), 0, 1)


@given(st.binary(max_size=400) | st.lists(st.tuples(st.text(), st.floats() | st.integers() | st.none(), st.floats())))
def test_whatever_a_job_writes_only_finite_numbers_are_read(written: object) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        if isinstance(written, bytes):
            path.write_bytes(written)
        else:
            assert isinstance(written, list)
            path.write_text("".join(json.dumps(list(entry)) + "\n" for entry in written))
        for metric in read_metrics(MetricFiles(str(path), str(path)), 0, 1).values():
            assert all(map(math.isfinite, [metric["value"], *metric.get("values", ())]))
