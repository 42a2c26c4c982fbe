"""`jobmeter cluster` on this machine: its options, its output and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobmeter.cli.main import main
from tests.records import violations_of_schema
from tests.running import ROOT
from tests.terminal import Terminal
from tests.waiting import LONG


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def cluster(*words: str) -> int:
    return main(["cluster", "--store", "store", "--interval", "0.1s", *words])


def test_the_report_is_printed_after_the_time_given(capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == cluster("--for", "0.3s")
    out = capfd.readouterr().out
    assert f"{os.uname().nodename}: 1 node, watched for " in out
    assert "Stored as " in out


def test_json_page_and_report_have_the_same_and_what_is_stored_can_be_shown_again(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert 0 == cluster("--for", "0.3s", "--json", "--html", "p.html", "--report", "r.json")
    printed = json.loads(capfd.readouterr().out)
    assert [] == violations_of_schema("cluster", printed)
    assert printed == json.loads((tmp_path / "r.json").read_text())
    assert "<!DOCTYPE html>" in (tmp_path / "p.html").read_text()
    assert 0 == cluster("--show", "last", "--json", "--html", "again.html")
    shown = json.loads(capfd.readouterr().out)
    assert (printed["id"], printed["samples"], printed["ended"]) == (shown["id"], shown["samples"], shown["ended"])
    assert printed["cluster"].keys() == shown["cluster"].keys()
    assert "<!DOCTYPE html>" in (tmp_path / "again.html").read_text()


def test_lines_come_from_options_else_from_the_configuration(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "jobmeter.toml").write_text('cluster_high = 80\ncluster_low = "20%"\ncluster_after = "5m"\n')
    assert 0 == cluster("--for", "0.1s", "--json", "--high", "70%")
    assert {"high_percent": 70.0, "low_percent": 20.0, "after_seconds": 300.0} == json.loads(capfd.readouterr().out)[
        "thresholds"
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--for", "1s", "--until-idle"), "each say when to end: give one of them"),
        (("--until-idle", "--", "true"), "each say when to end: give one of them"),
        (("--high", "120"), "--high: '120' is more than 100 %"),
        (("--high", "20", "--low", "30"), "--low: 30 % is not below --high, 20 %"),
        (("--after", "soon"), "--after: 'soon' is not a duration"),
        (("--engine", "slurm", "--for", "1s"), "a cluster of 'slurm' cannot be watched. There are: local, ray."),
        (("--engine", "local", "--address", "a:1"), "--address: the local engine has none"),
        (("--html", "page.txt"), "--html: page.txt: it is a page"),
        (("--report", "page.html"), "--report: page.html: it is JSON"),
        (("--html", "none/page.html"), "--html: none/page.html: cannot be written there"),
        (("--show", "last"), "no cluster was watched with this store"),
        (("--show", "x", "--for", "1s"), "--show: reports what is stored"),
        (("--address", "ray://head:10001"), "it must be HOST:PORT of the head"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(
    words: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert 2 == cluster(*words)
    error = capfd.readouterr().err
    assert said in error
    assert 1 == error.count("\n")


@pytest.mark.parametrize(
    ("command", "code"), [(["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137), (["nix"], 127)]
)
def test_the_exit_code_is_the_commands(command: list[str], code: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert code == cluster("--", *command)
    assert "" == capfd.readouterr().out


def test_a_command_has_stdout_and_the_report_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == cluster("--", "sh", "-c", "echo out; sleep 0.2")
    output = capfd.readouterr()
    assert "out\n" == output.out
    assert ": 1 node, watched for" in output.err


def test_a_signal_reaches_the_command_which_is_watched_to_its_end(tmp_path: Path) -> None:
    script = "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    command = [sys.executable, "-m", "jobmeter", "cluster", "--store", "store", "--", "sh", "-c", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "ready\n" == process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=LONG)
    assert (5, "got it\n") == (process.returncode, out)
    assert ": 1 node, watched for" in error


def test_until_idle_ends_when_no_job_runs(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    assert 0 == cluster("--until-idle", "--json")
    assert json.loads(capfd.readouterr().out)["samples"] >= 3


def test_a_table_changes_in_place_and_ctrl_c_ends_it_with_the_report(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jobmeter", "cluster", "--interval", "0.2s", "--store", str(tmp_path / "store")]
    terminal = Terminal(command, {**os.environ, "PYTHONPATH": f"{ROOT}/src"}, str(tmp_path))
    terminal.wait_for("local: 1 node, 0:01")
    terminal.wait_for("reserved")
    terminal.press("\x03")
    terminal.wait_for("Stored as ")
    assert 0 == terminal.process.wait()
    terminal.hang_up()
    assert "Traceback" not in terminal.plain
