"""No secret of a command line is anywhere in the store, in a report or in a message; the job gets it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.running import command_line, environment, jobmeter, workplace
from tests.several_users import jobmeter_of
from tests.waiting import LONG, wait_for

SECRET = "hunter2-Zq9"
# A child with the same secret, and one whose arguments are changed by exec; each seen while it sleeps.
CHILD = "python3 -c 'import time; time.sleep(0.4)' --password={secret} &"
LINE = f"sleep 0.4 & {CHILD} wait; printf %s {{secret}} >{{folder}}/got"
KEYS = "default,proc_cmd,ps_cmd"


def everything(folder: str) -> str:
    """All bytes of all files below."""
    paths = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
    return "".join(Path(path).read_bytes().decode("utf-8", "replace") for path in paths)


def test_run_records_no_secret_and_the_job_gets_it() -> None:
    folder = workplace()
    script = LINE.format(secret="$2", folder=folder)
    command = ["sh", "-c", script, "--token", SECRET, f"--password={SECRET}", f"AWS_SECRET_ACCESS_KEY={SECRET}"]
    command[3:3] = ["name"]
    words = ["--store", f"{folder}/store", "--report", f"{folder}/report.json", "--measurements", KEYS]
    done = jobmeter("run", *words, "--per-process", "--interval", "0.05", "--", *command)
    assert done.returncode == 0, done.stderr
    assert Path(folder, "got").read_text() == SECRET
    os.unlink(f"{folder}/got")
    assert SECRET not in done.stderr + everything(folder)
    record = json.loads(Path(folder, "report.json").read_text())
    assert "REDACTED" in record["command"]
    assert "--password=REDACTED" in json.dumps(record["processes"])
    assert "--password=REDACTED" in json.dumps(record["measurements"]["proc_cmd"])
    assert "--password=REDACTED" in json.dumps(record["measurements"]["ps_cmd"])


def test_attach_records_no_secret() -> None:
    folder = workplace()
    job = subprocess.Popen(["sh", "-c", "read line; :", "x", f"--password={SECRET}"], stdin=subprocess.PIPE)
    words = ("attach", "--store", f"{folder}/store", "--report", f"{folder}/r.json", str(job.pid))
    attached = subprocess.Popen(command_line(words), env=environment(), stderr=subprocess.PIPE, text=True)
    wait_for(lambda: "measurements" in everything(f"{folder}/store"), "a journal")
    job.communicate()
    _, stderr = attached.communicate(timeout=LONG)
    assert SECRET not in stderr + everything(folder)
    assert "--password=REDACTED" in json.loads(Path(folder, "r.json").read_text())["command"]


def test_the_name_that_a_command_gives_a_run_has_no_secret() -> None:
    folder = workplace()
    program = Path(folder, f"token={SECRET}")
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = jobmeter("run", "--store", f"{folder}/store", "--", str(program))
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stderr + everything(f"{folder}/store")


def test_a_workflow_records_no_secret_and_its_jobs_get_it() -> None:
    folder = workplace()
    spec = Path(folder, "flow.yaml")
    spec.write_text(
        f"name: demo\njobs:\n  - name: a\n    command: test x{SECRET} = x{SECRET} --password={SECRET} || true\n"
        f"  - name: b\n    command: no-such-program --token {SECRET}\n"
    )
    done = jobmeter_of("workflow", "run", "--store", f"{folder}/store", str(spec))
    spec.unlink()
    stored = everything(f"{folder}/store/workflows") + everything(f"{folder}/store/journal")
    assert "REDACTED" in stored
    assert f"--password={SECRET}" not in stored
    assert f"--token {SECRET}" not in stored + done.stderr + done.stdout


@pytest.mark.parametrize(("setting", "shown"), [("redact = []", True), ("redact = ['licence']", True), ("", False)])
def test_the_configuration_says_what_is_hidden(setting: str, shown: bool) -> None:
    folder = workplace()
    Path(folder, "jobmeter.toml").write_text(setting)
    report = f"{folder}/r.json"
    words = ["--quiet", "--report", report, "--", "true", f"--password={SECRET}", "--licence", "key-1"]
    done = jobmeter("run", *words, cwd=folder, env={**environment(), "HOME": folder})
    assert (0, "") == (done.returncode, done.stderr)
    command = json.loads(Path(report).read_text())["command"]
    assert shown == (f"--password={SECRET}" in command)
    assert ("licence" in setting) == ("key-1" not in command)
