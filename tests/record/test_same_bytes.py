"""What `--report` writes is byte for byte what `show --json` prints: what the journal holds, with the findings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobmeter.cli.main import main
from jobmeter.record.build import as_json
from tests.container_engines import IMAGE, Engine
from tests.records import parse_record
from tests.running import command_line, environment, jobmeter, workplace
from tests.workflow.live import Place


def shown(store: str, run: str, capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    assert 0 == main(["show", "--json", "--store", store, run])
    return capfd.readouterr().out


def run(*options: str, words: Sequence[str] = ("true",), **more: Any) -> tuple[str, str]:
    """`jobmeter run`: its store, and what --report wrote."""
    folder = workplace()
    jobmeter("run", "--report", f"{folder}/r.json", "--store", folder, *options, "--", *words, **more)
    return folder, Path(folder, "r.json").read_text()


@pytest.mark.parametrize(
    "words",
    [["true"], ["sh", "-c", "exit 3"], ["sh", "-c", "kill -9 $$"], ["sh", "-c", "sleep 0.3 & sleep 0.1"]],
    ids=["completed", "failed", "killed", "left something running"],
)
def test_the_report_of_a_run_is_what_show_prints(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    store, report = run("--memory", "1g", "--cpus", "0.5", "--label", "team=é", words=words)
    assert report == shown(store, "last", capfd)


def test_findings_are_in_both(capfd: pytest.CaptureFixture[str]) -> None:
    store, report = run("--memory", "20m", words=[sys.executable, "-c", "x = bytearray(60 << 20)"])
    (finding,) = parse_record(report)["findings"]
    assert ("over_memory", "problem") == (finding["kind"], finding["severity"])
    assert report == shown(store, "last", capfd)


def test_labels_and_arguments_that_are_no_utf_8_are_the_same_in_both(capfd: pytest.CaptureFixture[str]) -> None:
    odd = os.fsdecode(b"caf\xe9\n")
    store, report = run("--label", f"dish={odd}", "--name", odd, words=["true", odd])
    assert ("caf�e9\n", "caf�e9\n") == (parse_record(report)["labels"]["dish"], parse_record(report)["name"])
    assert report == shown(store, "last", capfd)


def test_without_any_measurement_they_are_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    store, report = run("--measurements", "none")
    assert report == shown(store, "last", capfd)


def test_the_report_of_attach_is_what_show_prints(capfd: pytest.CaptureFixture[str]) -> None:
    folder = workplace()
    job = subprocess.Popen(["sleep", "100"])
    words = command_line(["attach", "--quiet", "--report", f"{folder}/r.json", "--store", folder, str(job.pid)])
    meter = subprocess.Popen(words, env=environment())
    while not os.path.isdir(f"{folder}/journal") or not os.listdir(f"{folder}/journal"):
        time.sleep(0.02)
    meter.send_signal(signal.SIGINT)
    assert 0 == meter.wait(60)
    job.kill()
    job.wait()
    report = Path(folder, "r.json").read_text()
    assert "detached" == parse_record(report)["outcome"]["status"]
    assert report == shown(folder, "last", capfd)


def test_what_show_prints_of_a_job_of_a_workflow_is_what_its_journal_holds(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path)
    done = place.run("name: two\njobs: [{name: good, command: 'true'}, {name: bad, command: 'exit 3'}]\n")
    assert 1 == done.returncode, done.stderr
    records = [
        line["record"]
        for path in (place.store / "journal").glob("*.jsonl")
        for line in map(json.loads, path.read_text().splitlines())
        if isinstance(line, dict) and "record" in line
    ]
    assert {"good", "bad"} == {record["name"] for record in records if record is not None}
    for record in records:
        assert record is not None
        printed = shown(str(place.store), record["id"], capfd)
        findings = json.loads(printed)["findings"]
        whole: Any = {**record, "findings": findings}
        assert as_json(whole) + "\n" == printed


def test_the_report_of_a_container_is_what_show_prints(docker: Engine, capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--container", IMAGE, "--engine", docker.name, "--network", "none"]
    store, report = run(*options, words=["/bin/busybox", "true"], env=docker.environment(), stdin=subprocess.DEVNULL)
    assert docker.name == parse_record(report)["provenance"]["container"]["engine"]
    assert report == shown(store, "last", capfd)
