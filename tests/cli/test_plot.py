"""`jobmeter plot`: pages and pictures, and what is said when there is nothing to draw."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobmeter.cli.main import main
from tests.runs import keep, record, windows


@pytest.fixture
def store(tmp_path: Path) -> str:
    location = str(tmp_path / "store")
    usage: dict[str, Any] = {"wall_seconds": 10.0, "cpu_peak_percent": 95.0, "memory_peak_bytes": 100 * 2**20}
    keep(location, record("aaaa00000001", "train", **usage), record("bbbb00000002", "a/b c", **usage), cells=windows())
    return location


def files(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [os.path.basename(line) for line in capfd.readouterr().out.splitlines()]


def test_a_run_becomes_one_page(store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["plot", "--store", store, "train", "-o", str(tmp_path / "new" / "folder")])
    assert ["jobmeter-train-aaaa00.html"] == files(capfd)
    made = (tmp_path / "new" / "folder" / "jobmeter-train-aaaa00.html").read_text()
    assert "Plotly.newPlot" in made
    assert "http-equiv" in made


@pytest.mark.parametrize(
    "chosen",
    [["aaaa00000001", "bbbb00000002"], ["--job-ids", "aaaa,bbbb"], ["--name", "*"], ["--where", "wall_seconds > 1"]],
)
def test_several_runs_share_a_page_however_they_are_chosen(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], chosen: list[str]
) -> None:
    assert 0 == main(["plot", "--store", store, *chosen, "-o", str(tmp_path), "--prefix", "both"])
    assert ["both.html"] == files(capfd)
    made = (tmp_path / "both.html").read_text()
    assert "CPU of all runs" in made
    assert "Memory of all runs" in made


def test_a_name_that_no_file_may_have_makes_a_file(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["plot", "--store", store, "bbbb", "-o", str(tmp_path)])
    assert ["jobmeter-a_b_c-bbbb00.html"] == files(capfd)


@pytest.mark.parametrize(("form", "begin"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_pictures_are_made_without_a_browser(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], form: str, begin: bytes
) -> None:
    assert 0 == main(
        ["plot", "--store", store, "--name", "*", "--format", form, "-o", str(tmp_path), "--prefix", "p", "--json"]
    )
    made = json.loads(capfd.readouterr().out)["files"]
    names = {"p-aaaa00000001", "p-bbbb00000002", "p-summary", "p-cpu", "p-memory"}
    assert {f"{name}.{form}" for name in names} == {os.path.basename(path) for path in made}
    assert all(Path(path).read_bytes().startswith(begin) for path in made)


def test_any_measurement_of_the_run_can_be_drawn(store: str, tmp_path: Path) -> None:
    keys = "proc_read_bytes,proc_processes"
    assert 0 == main(["plot", "--store", store, "train", "--measurements", keys, "-o", str(tmp_path), "--prefix", "io"])
    made = (tmp_path / "io.html").read_text()
    assert "MiB per second" in made
    assert "Resident memory" not in made


def test_more_runs_than_the_limit_are_told(store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["plot", "--store", store, "--name", "*", "--limit", "1", "-o", str(tmp_path)])
    assert "only the newest 1 runs are drawn" in capfd.readouterr().err


def test_a_finished_page_is_opened(store: str, tmp_path: Path) -> None:
    viewer = tmp_path / "viewer"
    viewer.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/seen\n')
    viewer.chmod(0o755)
    words = [sys.executable, "-m", "jobmeter", "plot", "--store", store, "train", "-o", str(tmp_path), "--open"]
    done = subprocess.run(words, env={**os.environ, "BROWSER": f"{viewer} %s"}, capture_output=True, check=False)
    assert 0 == done.returncode
    assert f"file://{tmp_path}/jobmeter-train-aaaa00.html" == (tmp_path / "seen").read_text().strip()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "nothing"),
        (["--name", "none*"], "no run matches these filters"),
        (["train", "--name", "x"], "name runs or filter them, not both"),
        (["train", "--measurements", "nvml_power"], "nvml_power: not measured in run aaaa00000001"),
        (["train", "-o", "/proc/nowhere"], "-o: /proc/nowhere: cannot be made"),
        (["train", "-o", "/dev/null/x"], "-o: /dev/null/x: cannot be made: Not a directory"),
        (["train", "--format", "svg", "--open"], "--open opens a page"),
        (["train", "--limit", "0"], "--limit: '0' is not a whole number above 0"),
    ],
)
def test_bad_input_is_one_clear_line(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert 2 == main(["plot", "--store", store, *arguments])
    printed = capfd.readouterr()
    assert "" == printed.out
    assert words in printed.err
    assert 1 == printed.err.count("\n")


def test_a_run_without_windows_has_nothing_to_plot(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    keep(str(tmp_path / "store"), record("aaaa00000001"))
    assert 2 == main(["plot", "--store", str(tmp_path / "store"), "-o", str(tmp_path)])
    assert "jobmeter: nothing to plot: no time series is stored for aaaa00000001\n" == capfd.readouterr().err


def test_a_directory_that_may_not_be_written_to_is_told(store: str, tmp_path: Path) -> None:
    if os.getuid() == 0:
        # Root may write anywhere but to a file system that is read-only, as /proc and /sys are.
        assert 2 == main(["plot", "--store", store, "train", "-o", "/sys/kernel"])
        return
    tmp_path.chmod(0o500)
    assert 2 == main(["plot", "--store", store, "train", "-o", str(tmp_path)])
