"""Pictures for papers, made without a browser."""

from __future__ import annotations

import re
import struct
import warnings
from pathlib import Path

import pytest

from jobmeter.report.plot.image import job_image, pictures, write_image, write_pdf
from jobmeter.report.plot.series import JobCurves
from tests.report.plot.drawn import job


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
    drawn = pictures(jobs)
    assert ["aaaa", "bbbb", "summary", "cpu", "memory", "processes"] == list(drawn)
    for name in ("cpu", "memory"):
        write_image(drawn[name], str(tmp_path / "overview.svg"))
        assert ">train bbbb</text>" in (tmp_path / "overview.svg").read_text()
    write_image(drawn["summary"], str(tmp_path / "summary.svg"))
    text = (tmp_path / "summary.svg").read_text()
    assert ">95 %</text>" in text
    assert ">1 GiB</text>" in text


def test_a_run_without_curves_has_its_bars(tmp_path: Path) -> None:
    lone = JobCurves({"id": "aaaa", "name": "x", "cpu_peak_percent": 95.0}, [])
    (picture,) = pictures([lone]).values()
    write_image(picture, str(tmp_path / "x.svg"))
    assert ">95 %</text>" in (tmp_path / "x.svg").read_text()


def test_a_pdf_has_a_page_for_each_picture_and_the_same_runs_give_the_same_file(tmp_path: Path) -> None:
    for name in ("one.pdf", "two.pdf"):
        write_pdf(pictures([job("aaaa"), job("bbbb")]).values(), str(tmp_path / name))
    content = (tmp_path / "one.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert 6 == len(re.findall(rb"/Type /Page\b", content))
    assert content == (tmp_path / "two.pdf").read_bytes()


@pytest.mark.parametrize("name", ["訓練 学習 훈련", "обучение", "cost $5 and $6", "🚀 launch", "تدريب"])
def test_a_name_in_any_script_is_drawn_without_a_warning(tmp_path: Path, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for form in ("svg", "png"):
            write_image(job_image(job(name=name)), str(tmp_path / f"run.{form}"))
        write_pdf([job_image(job(name=name))], str(tmp_path / "run.pdf"))
    assert name.split()[0] in (tmp_path / "run.svg").read_text()
