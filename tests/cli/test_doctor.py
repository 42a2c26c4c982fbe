"""`jobmeter doctor`."""

from __future__ import annotations

import json
import sys

from tests.running import NOBODY, environment, jobmeter
from tests.terminal import Terminal


def findings(user: int) -> dict[str, dict[str, object]]:
    done = jobmeter("doctor", "--json", user=user)
    assert done.returncode == 0, done.stderr
    return {finding["subject"]: finding for finding in json.loads(done.stdout)}


def test_doctor_reports_to_root_that_a_job_gets_a_cgroup_of_its_own() -> None:
    assert findings(0)["cgroup"]["good"]


def test_an_ordinary_user_is_shown_what_is_missing_and_how_to_get_it() -> None:
    cgroup = findings(NOBODY)["cgroup"]
    assert not cgroup["good"]
    assert "chown" in str(cgroup["advice"]) or "Delegate" in str(cgroup["advice"])


def test_a_store_that_cannot_be_written_is_reported() -> None:
    done = jobmeter("doctor", env={**environment(), "JOBMETER_STORE": "/proc/no-store"}, user=NOBODY)
    assert "/proc/no-store: cannot be written" in done.stdout
    assert "--store" in done.stdout


def test_people_get_one_line_a_subject() -> None:
    done = jobmeter("doctor")
    assert done.stdout.startswith("jobmeter ")
    for subject in ("cgroup", "perf", "launcher", "store"):
        assert subject in done.stdout


def test_a_narrow_terminal_breaks_lines_between_words_and_aligns_them() -> None:
    words = [sys.executable, "-m", "jobmeter", "doctor"]
    shown = Terminal(words, environment(), columns=40).finish().text.splitlines()
    at = shown.index(next(line for line in shown if line.startswith("  ok  launcher")))
    beginning = len("  ok  engine celery  ")
    assert shown[at][beginning:] == "compiled: the"
    assert shown[at + 1] == " " * beginning + "launcher's size"
