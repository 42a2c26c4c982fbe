"""`jobmeter attach`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.listing import Commands
from tests.parts import need_root
from tests.running import NOBODY, command_line, environment, interpreter, jobmeter, workplace
from tests.terminal import Terminal, visible
from tests.waiting import LONG, wait_for

WAIT = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
BURN = WAIT + "end = time.process_time() + 0.6\nwhile time.process_time() < end: pass"


def wait_until_attached(folder: str) -> None:
    """What runs from then on is measured."""
    wait_for(lambda: os.path.isdir(f"{folder}/journal") and bool(os.listdir(f"{folder}/journal")), "a journal")


def test_a_tree_is_measured_until_its_last_process_ends() -> None:
    folder = workplace()
    burn = f'{interpreter()} -c "$0" {folder}/go'
    job = subprocess.Popen(["sh", "-c", f"{burn} & {burn} & wait", BURN])
    words = command_line(
        ["attach", "--interval", "0.2", "--report", f"{folder}/r.json", "--store", folder, str(job.pid)]
    )
    meter = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    wait_until_attached(folder)
    Path(folder, "go").touch()
    job.wait()
    _, stderr = meter.communicate(timeout=LONG)
    record = json.loads(Path(folder, "r.json").read_text())
    assert meter.returncode == 0
    assert record["outcome"]["status"] == "completed"
    assert record["usage"]["cpu_seconds"]["value"] == pytest.approx(1.2, abs=0.2)
    assert record["usage"]["processes_peak"]["value"] == 3
    assert "sh ended" in stderr


def test_what_was_used_before_does_not_count() -> None:
    folder = workplace()
    body = "import time\nwhile time.process_time() < 1.5: pass\nprint(flush=True)\n" + WAIT
    job = subprocess.Popen(["sh", "-c", f'{interpreter()} -c "$0" {folder}/go; :', body], stdout=subprocess.PIPE)
    assert job.stdout is not None
    job.stdout.read(1)
    options = ["--quiet", "--interval", "0.2", "--report", f"{folder}/r.json", "--store", folder]
    words = command_line(["attach", *options, "--measurements", "default,proc_ctx_switches", str(job.pid)])
    meter = subprocess.Popen(words, env=environment())
    wait_until_attached(folder)
    Path(folder, "go").touch()
    job.wait()
    job.stdout.close()
    assert 0 == meter.wait(LONG)
    record = json.loads(Path(folder, "r.json").read_text())
    assert record["usage"]["cpu_seconds"]["value"] < 0.3


def test_ctrl_c_ends_the_measuring_and_not_the_process() -> None:
    folder = workplace()
    job = subprocess.Popen(["sleep", "300"])
    words = command_line(["attach", "--report", f"{folder}/r.json", "--store", folder, str(job.pid)])
    meter = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    wait_until_attached(folder)
    meter.send_signal(signal.SIGINT)
    _, stderr = meter.communicate(timeout=LONG)
    assert job.poll() is None
    job.kill()
    job.wait()
    record = json.loads(Path(folder, "r.json").read_text())
    assert 0 == meter.returncode
    assert {"status": "detached", "exit_code": None, "signal": None} == record["outcome"]
    assert "sleep detached (still running) after" in stderr
    assert record["usage"]["cpu_seconds"]["quality"] == "at least"


def test_a_run_that_was_detached_is_final_and_no_failure(jobmeter: Commands) -> None:
    detach(str(jobmeter.folder), "sleep", "300")
    rows = json.loads(jobmeter("ls", "--status", "detached", "--json").out)
    assert [("sleep", "detached")] == [(row["name"], row["status"]) for row in rows]
    shown = jobmeter("show", "last").out
    assert "detached (still running) after" in shown
    assert "It left" not in shown
    checked = jobmeter("check", "last")
    assert (0, False) == (checked.code, "failed" in checked.out + checked.err)
    assert "success_rate" not in jobmeter("stats", "--json").out
    assert 0 == jobmeter("rm", "--yes", "last").code
    assert [] == list((jobmeter.folder / "journal").iterdir())


def test_old_runs_that_were_detached_are_collected(jobmeter: Commands) -> None:
    detach(str(jobmeter.folder), "sleep", "300")
    (path,) = (jobmeter.folder / "journal").iterdir()
    path.write_text(re.sub(r'"started":"\d{4}', '"started":"2001', path.read_text()))
    assert 0 == jobmeter("gc", "--older-than", "90d").code
    assert [] == list((jobmeter.folder / "journal").iterdir())


def detach(store: str, *command: str) -> None:
    """Keep a run there of a process that is measured for a moment and goes on."""
    job = subprocess.Popen(command)
    words = command_line(["attach", "--quiet", "--store", store, str(job.pid)])
    meter = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE)
    wait_until_attached(store)
    meter.send_signal(signal.SIGINT)
    meter.communicate(timeout=LONG)
    job.kill()
    job.wait()


@pytest.mark.parametrize(
    ("pid", "words"), [("0", "not a process id"), ("abc", "not a process id"), ("4194303", "no process")]
)
def test_a_process_that_is_not_there_is_one_clear_line(pid: str, words: str) -> None:
    done = jobmeter("attach", pid)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_another_users_process_is_measured_as_far_as_it_may_be() -> None:
    need_root("for a process of another user")
    folder = workplace()
    job = subprocess.Popen(["sleep", "300"])
    words = command_line(
        ["attach", "--interval", "0.2", "--report", f"{folder}/r.json", "--store", folder, str(job.pid)], NOBODY
    )
    meter = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    wait_until_attached(folder)
    time.sleep(0.5)  # for a sample or two
    job.kill()
    job.wait()
    _, stderr = meter.communicate(timeout=LONG)
    assert meter.returncode == 0, stderr
    record = json.loads(Path(folder, "r.json").read_text())
    assert record["usage"]["memory_peak_bytes"]["value"] > 0


def test_on_a_terminal_it_shows_that_it_is_at_work(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "300"])
    words = [sys.executable, "-m", "jobmeter", "attach", "--store", str(tmp_path), "--interval", "0.1s"]
    session = Terminal([*words, str(sleeper.pid)], environment(), columns=120)
    session.wait_for(f"measuring process {sleeper.pid}: ")
    session.wait_for("(Ctrl-C ends the measurement)")
    sleeper.kill()
    sleeper.wait()
    shown = session.finish()
    assert (0, False) == (shown.code, any("measuring process" in line for line in visible(shown.text)))
    assert re.search(r"measuring process \d+: .*memory [\d.]+ [KM]iB", shown.text)
