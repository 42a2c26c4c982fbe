from __future__ import annotations

import os
import signal

import pytest

from jobmeter.analyse.outcome import in_words, outcome, signal_name
from jobmeter.model import Outcome, Status


def exited(code: int) -> int:
    return code << 8


def killed(number: int, *, core: bool = False) -> int:
    return number | (0x80 if core else 0)


@pytest.mark.parametrize(
    ("wait_status", "ended_by", "oom_kills", "expected"),
    [
        (exited(0), None, 0, Outcome(Status.COMPLETED, 0)),
        (exited(3), None, 0, Outcome(Status.FAILED, 3)),
        (killed(9), None, 0, Outcome(Status.KILLED, None, 9)),
        (killed(11, core=True), None, 0, Outcome(Status.KILLED, None, 11)),
        (exited(137), None, 0, Outcome(Status.FAILED, 137)),
        (killed(15), Status.TIMEOUT, 0, Outcome(Status.TIMEOUT, None, 15)),
        (exited(0), Status.TIMEOUT, 0, Outcome(Status.TIMEOUT, 0)),
        (killed(9), Status.OOM, 0, Outcome(Status.OOM, None, 9)),
        (killed(9), None, 1, Outcome(Status.OOM, None, 9)),
        (exited(1), None, 1, Outcome(Status.OOM, 1)),
        (exited(0), None, 1, Outcome(Status.COMPLETED, 0)),
        (killed(2), Status.CANCELLED, 0, Outcome(Status.CANCELLED, None, 2)),
        (exited(130), Status.CANCELLED, 0, Outcome(Status.CANCELLED, 130)),
        (exited(0), Status.CANCELLED, 0, Outcome(Status.COMPLETED, 0)),
        (killed(9), Status.CANCELLED, 1, Outcome(Status.OOM, None, 9)),
        (killed(9), Status.TIMEOUT, 1, Outcome(Status.TIMEOUT, None, 9)),
        (None, None, 0, Outcome(Status.LOST)),
        (None, Status.CANCELLED, 0, Outcome(Status.CANCELLED)),
    ],
)
def test_an_outcome_is_what_the_kernel_and_jobmeter_know(
    wait_status: int | None, ended_by: Status | None, oom_kills: int, expected: Outcome
) -> None:
    assert expected == outcome(wait_status, ended_by=ended_by, oom_kills=oom_kills)


def test_a_sigkill_without_a_count_of_the_kernel_s_is_not_out_of_memory() -> None:
    child = os.posix_spawn("/bin/sh", ["sh", "-c", "kill -9 $$"], {})
    status = os.waitpid(child, 0)[1]
    assert Outcome(Status.KILLED, None, signal.SIGKILL) == outcome(status, ended_by=None, oom_kills=0)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Outcome(Status.COMPLETED, 0), "completed"),
        (Outcome(Status.FAILED, 3), "failed with exit code 3"),
        (Outcome(Status.KILLED, None, 11), "killed by SIGSEGV"),
        (Outcome(Status.KILLED, None, 63), "killed by signal 63"),
        (Outcome(Status.OOM, None, 9), "out of memory (SIGKILL)"),
        (Outcome(Status.OOM, 137), "out of memory (exit code 137)"),
        (Outcome(Status.TIMEOUT, None, 15), "stopped at its runtime limit (SIGTERM)"),
        (Outcome(Status.TIMEOUT, 0), "stopped at its runtime limit (exit code 0)"),
        (Outcome(Status.CANCELLED, None, 2), "cancelled (SIGINT)"),
        (Outcome(Status.CANCELLED), "cancelled"),
        (Outcome(Status.LOST), "lost: its end is unknown"),
        (Outcome(Status.RUNNING), "still running"),
        (Outcome(Status.DETACHED), "detached (still running)"),
    ],
)
def test_every_outcome_has_a_phrase_for_people(result: Outcome, expected: str) -> None:
    assert expected == in_words(result)


@pytest.mark.parametrize(("number", "expected"), [(9, "SIGKILL"), (1, "SIGHUP"), (50, "signal 50")])
def test_a_signal_without_a_name_is_its_number(number: int, expected: str) -> None:
    assert expected == signal_name(number)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Outcome(Status.COMPLETED, 0), 0),
        (Outcome(Status.FAILED, 3), 3),
        (Outcome(Status.KILLED, None, 9), 137),
        (Outcome(Status.TIMEOUT, None, 15), 143),
    ],
)
def test_the_code_a_shell_shows_is_the_job_s_own_or_128_and_its_signal(result: Outcome, expected: int) -> None:
    assert expected == result.shell_code
