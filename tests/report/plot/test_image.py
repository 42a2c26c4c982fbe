"""Pictures for papers, made without a browser."""

from __future__ import annotations

import struct
from pathlib import Path

from jobmeter.report.plot.image import job_image, overview_image, summary_image, write_image
from jobmeter.report.plot.series import CPU, MEMORY, JobCurves
from tests.report.plot.test_figures import job


def test_a_run_is_drawn_as_svg_whose_texts_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "run.svg"
    write_image(job_image(job(requirement_memory_bytes=2**31)), str(path))
    drawn = path.read_text()
    for words in ("train aaaa", "CPU", "Memory", "Processes", "GiB", "requested", "time since the start (min)"):
        assert f">{words}</text>" in drawn


def test_the_same_run_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        write_image(job_image(job()), str(tmp_path / name))
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_png_is_wide_enough_for_print(tmp_path: Path) -> None:
    path = tmp_path / "run.png"
    write_image(job_image(job(), of_day=True), str(path))
    content = path.read_bytes()
    assert b"\x89PNG\r\n\x1a\n" == content[:8]
    width, _ = struct.unpack(">II", content[16:24])
    assert 1440 == width


def test_several_runs_have_overviews_and_a_summary(tmp_path: Path) -> None:
    jobs = [job("aaaa", cpu_peak_percent=95.0, requirement_cpus=2.0), job("bbbb", memory_peak_bytes=2**30)]
    for heading in (CPU, MEMORY):
        overview = overview_image(jobs, heading)
        assert overview is not None
        write_image(overview, str(tmp_path / "overview.svg"))
        assert ">train bbbb</text>" in (tmp_path / "overview.svg").read_text()
    write_image(summary_image(jobs), str(tmp_path / "summary.svg"))
    drawn = (tmp_path / "summary.svg").read_text()
    assert ">95 %</text>" in drawn
    assert ">1 GiB</text>" in drawn


def test_runs_without_a_quantity_have_no_overview_of_it() -> None:
    assert overview_image([JobCurves({"id": "aaaa", "name": "x"}, [])], CPU) is None
