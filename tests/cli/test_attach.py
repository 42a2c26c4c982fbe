"""`jobmeter attach`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.running import NOBODY, command_line, environment, interpreter, jobmeter, workplace

BURN = "import time\ntime.sleep(1.5)\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass"


def test_a_tree_is_measured_until_its_last_process_ends() -> None:
    folder = workplace()
    job = subprocess.Popen(["sh", "-c", f'{interpreter()} -c "$0" & {interpreter()} -c "$0" & wait', BURN])
    words = command_line(
        ["attach", "--interval", "0.2", "--report", f"{folder}/r.json", "--store", folder, str(job.pid)]
    )
    meter = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    job.wait()
    _, stderr = meter.communicate(timeout=20)
    record = json.loads(Path(folder, "r.json").read_text())
    assert meter.returncode == 0
    assert record["outcome"]["status"] == "completed"
    assert record["usage"]["cpu_seconds"]["value"] == pytest.approx(1.2, abs=0.2)
    assert record["usage"]["processes_peak"]["value"] == 3
    assert "sh ended" in stderr


def test_what_was_used_before_does_not_count() -> None:
    folder = workplace()
    body = "import os, time\nwhile time.process_time() < 1.5: pass\nos.write(1, b'x')\ntime.sleep(2)"
    job = subprocess.Popen(["sh", "-c", f'{interpreter()} -c "$0"; :', body], stdout=subprocess.PIPE)
    assert job.stdout is not None
    job.stdout.read(1)
    options = ["--quiet", "--interval", "0.2", "--report", f"{folder}/r.json", "--store", folder]
    jobmeter("attach", *options, "--measurements", "default,proc_ctx_switches", str(job.pid))
    job.wait()
    job.stdout.close()
    record = json.loads(Path(folder, "r.json").read_text())
    assert record["usage"]["cpu_seconds"]["value"] < 0.3


def test_ctrl_c_ends_the_measuring_and_not_the_process() -> None:
    folder = workplace()
    job = subprocess.Popen(["sleep", "30"])
    words = command_line(["attach", "--report", f"{folder}/r.json", "--store", folder, str(job.pid)])
    meter = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    while not os.path.exists(f"{folder}/journal") or not os.listdir(f"{folder}/journal"):
        time.sleep(0.05)
    meter.send_signal(signal.SIGINT)
    _, stderr = meter.communicate(timeout=20)
    assert job.poll() is None
    job.kill()
    job.wait()
    record = json.loads(Path(folder, "r.json").read_text())
    assert record["outcome"]["status"] == "running"
    assert "still running" in stderr
    assert record["usage"]["cpu_seconds"]["quality"] == "at least"


@pytest.mark.parametrize(
    ("pid", "words"), [("0", "not a process id"), ("abc", "not a process id"), ("4194303", "no process")]
)
def test_a_process_that_is_not_there_is_one_clear_line(pid: str, words: str) -> None:
    done = jobmeter("attach", pid)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_another_users_process_is_measured_as_far_as_it_may_be() -> None:
    folder = workplace()
    job = subprocess.Popen(["sleep", "2"])
    words = command_line(
        ["attach", "--interval", "0.2", "--report", f"{folder}/r.json", "--store", folder, str(job.pid)], NOBODY
    )
    meter = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    job.wait()
    _, stderr = meter.communicate(timeout=20)
    assert meter.returncode == 0, stderr
    record = json.loads(Path(folder, "r.json").read_text())
    assert record["usage"]["memory_peak_bytes"]["value"] > 0
