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
from tests.runs import keep, record, windows, workflow_run


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
    assert 'data-run="aaaa00000001"' in made
    assert "http-equiv" in made


@pytest.mark.parametrize(
    "chosen",
    [
        ["aaaa00000001", "bbbb00000002"],
        ["--job-ids", "aaaa,bbbb"],
        ["--name", "*"],
        ["--where", "wall_seconds > 1"],
        ["name=*"],
        ["name=train,name=a/b c"],
        ["name=train", "name=a*"],
        ["source=jobmeter"],
    ],
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
    names = {"p-aaaa00000001", "p-bbbb00000002", "p-summary", "p-cpu", "p-memory", "p-processes"}
    assert {f"{name}.{form}" for name in names} == {os.path.basename(path) for path in made}
    assert all(Path(path).read_bytes().startswith(begin) for path in made)


def test_any_measurement_of_the_run_can_be_drawn(store: str, tmp_path: Path) -> None:
    keys = "proc_read_bytes,proc_processes"
    assert 0 == main(["plot", "--store", store, "train", "--measurements", keys, "-o", str(tmp_path), "--prefix", "io"])
    made = (tmp_path / "io.html").read_text()
    assert "Bytes read." in made
    assert "Resident memory" not in made


def test_more_runs_than_the_limit_are_reported(store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
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
        (["name=other"], "'name=other': no run"),
        (["name=train", "last"], "name groups, as name=GLOB, or runs and workflows, not both"),
        (["name=train,last"], "'name=train,last': name runs, or a group"),
        (["train", "--measurements", "nvml_power"], "nvml_power: not measured in run aaaa00000001"),
        (["train", "-o", "/proc/nowhere"], "-o: /proc/nowhere: cannot be made"),
        (["train", "-o", "/dev/null/x"], "-o: /dev/null/x: cannot be made: Not a directory"),
        (["train", "--format", "svg", "--open"], "--open opens a page"),
        (["train", "--limit", "0"], "--limit: '0' is not a whole number above 0"),
        (["train", "--run-id", "2"], "--run-id selects a run of a workflow"),
        (["--name", "train", "--run-id", "2"], "--run-id selects a run of a workflow"),
        (["train", "-o", "@/x.svg", "--format", "png"], "x.svg: not a name for --format png. Name it x.png."),
        (["train", "-o", "@/x.html", "--prefix", "y"], "--prefix: names files in a directory"),
        (["train", "-o", "@/x.svg", "--open"], "--open opens a page"),
        (
            ["train", "--measurements", "nvml_*"],
            "nvml_*: not measured in run aaaa00000001. There are: proc_cpu_percent",
        ),
    ],
)
def test_bad_input_is_one_clear_line(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert 2 == main(["plot", "--store", store, *(word.replace("@", str(tmp_path)) for word in arguments)])
    printed = capfd.readouterr()
    assert "" == printed.out
    assert words in printed.err
    assert 1 == printed.err.count("\n")


def test_a_run_without_windows_is_in_the_summary_only(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    keep(str(tmp_path / "store"), record("aaaa00000001", memory_peak_bytes=2**30))
    assert 0 == main(["plot", "--store", str(tmp_path / "store"), "-o", str(tmp_path / "page.html")])
    assert "no time series is stored for aaaa00000001: in the summary only" in capfd.readouterr().err
    made = (tmp_path / "page.html").read_text()
    assert "<dd>1 GiB</dd>" in made
    assert 'title="peak 1 GiB"' in made


@pytest.mark.parametrize(
    ("name", "begin"), [("x.html", b"<!DOC"), ("x.SVG", b"<?xml"), ("x.png", b"\x89PNG"), ("x.pdf", b"%PDF")]
)
def test_a_file_can_be_named_and_its_extension_is_the_format(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, begin: bytes
) -> None:
    path = tmp_path / "new" / name
    assert 0 == main(["plot", "--store", store, "train", "-o", str(path)])
    (written,) = files(capfd)
    assert name.lower() == written
    assert (tmp_path / "new" / written).read_bytes().startswith(begin)


def test_a_directory_may_be_called_like_a_file(store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs.html").mkdir()
    assert 0 == main(["plot", "--store", store, "train", "-o", str(tmp_path / "runs.html")])
    assert ["jobmeter-train-aaaa00.html"] == os.listdir(tmp_path / "runs.html")


def test_all_pictures_of_a_pdf_are_one_file(store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["plot", "--store", store, "--name", "*", "--format", "pdf", "-o", str(tmp_path), "--prefix", "p"])
    assert ["p.pdf"] == files(capfd)


def test_a_glob_draws_every_measurement_it_matches(store: str, tmp_path: Path) -> None:
    assert 0 == main(["plot", "--store", store, "train", "--measurements", "proc_r*", "-o", str(tmp_path / "x.html")])
    made = (tmp_path / "x.html").read_text()
    assert "Bytes read." in made
    assert "Resident memory." in made
    assert "CPU in use." not in made


@pytest.fixture
def workflow(tmp_path: Path) -> str:
    """The store of a workflow of three jobs, of which the second has two attempts."""
    location = str(tmp_path / "flows")
    runs = [("job1", 1, 1), ("job2a", 2, 1), ("job2b", 2, 2), ("job3", 3, 1)]
    keep(location, *(workflow_run(run, number, attempt) for run, number, attempt in runs), cells=windows())
    return location


def drawn_runs(path: Path) -> list[str]:
    data = json.loads(path.read_text().partition('id="data">')[2].partition("</script>")[0])
    return [run["id"] for run in data["runs"]]


@pytest.mark.parametrize("names", [["Demo"], ["demo"], []])
def test_jobs_are_named_by_the_numbers_that_check_prints(workflow: str, tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "jobs.html"
    assert 0 == main(["plot", "--store", workflow, *names, "--job-ids", "1,2", "-o", str(path)])
    assert ["job1", "job2a", "job2b"] == drawn_runs(path)


def test_a_number_of_no_job_is_one_clear_line(workflow: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["plot", "--store", workflow, "--job-ids", "1,17"])
    assert (
        "jobmeter: --job-ids: run 1 of demo has no run of job 17. `jobmeter workflow results demo`"
        in capfd.readouterr().err
    )


def test_a_workflow_whose_plan_is_gone_is_drawn_by_its_runs(
    workflow: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["plot", "--store", workflow, "Demo", "-o", str(tmp_path / "x.html")])
    assert "the runs of its jobs are drawn, without the report" in capfd.readouterr().err
    assert 4 == len(drawn_runs(tmp_path / "x.html"))


def test_a_directory_that_may_not_be_written_to_is_an_error(store: str, tmp_path: Path) -> None:
    if os.getuid() == 0:
        # Root may write anywhere but to a file system that is read-only, as /proc and /sys are.
        assert 2 == main(["plot", "--store", store, "train", "-o", "/sys/kernel"])
        return
    tmp_path.chmod(0o500)
    assert 2 == main(["plot", "--store", store, "train", "-o", str(tmp_path)])
