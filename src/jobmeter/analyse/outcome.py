"""How a run ended, by what the kernel reports and what jobmeter did."""

from __future__ import annotations

import os
import signal

from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.model import Outcome, Status

if TYPE_CHECKING:
    from jobmeter.record.types import Record


def outcome(wait_status: int | None, *, ended_by: Status | None, oom_kills: int) -> Outcome:
    """The outcome of a job whose main process ended with `wait_status` (None: unknown).

    `ended_by` is `timeout`, `oom` or `cancelled` if jobmeter ended the job, or forwarded the
    signal that ended it. `oom_kills` is the kernel's own count for this job: an exit code
    of 137 alone proves nothing.
    """
    if wait_status is None:
        return Outcome(ended_by or Status.LOST)
    code, number = None, None
    if os.WIFSIGNALED(wait_status):
        number = os.WTERMSIG(wait_status)
    else:
        code = os.WEXITSTATUS(wait_status)
    status: Status
    if ended_by in (Status.TIMEOUT, Status.OOM):
        status = ended_by
    elif code == 0:
        status = Status.COMPLETED
    elif oom_kills > 0:
        status = Status.OOM
    elif ended_by is not None:
        status = ended_by
    else:
        status = Status.KILLED if number is not None else Status.FAILED
    return Outcome(status, code, number)


def outcome_of(record: Record) -> Outcome:
    """How the run of this record ended."""
    ended = record["outcome"]
    return Outcome(Status(ended["status"]), ended["exit_code"], ended["signal"])


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def in_words(result: Outcome) -> str:
    """One phrase for people: `completed`, `failed with exit code 3`, `killed by SIGSEGV`."""
    if result.status == Status.COMPLETED:
        return "completed" if result.exit_code is not None else "ended (exit code unknown: not our child)"
    if result.status == Status.FAILED and result.exit_code == 0:
        return "failed: it did not make all its outputs"
    if result.status == Status.FAILED:
        return f"failed with exit code {result.exit_code}"
    how = signal_name(result.signal) if result.signal is not None else f"exit code {result.exit_code}"
    if result.status == Status.KILLED:
        return f"killed by {how}"
    phrase = {
        Status.OOM: "out of memory",
        Status.TIMEOUT: "stopped at its runtime limit",
        Status.CANCELLED: "cancelled",
        Status.LOST: "lost: its end is unknown",
        Status.DETACHED: "detached (still running)",
        Status.RUNNING: "still running",
    }[result.status]
    return f"{phrase} ({how})" if result.signal is not None or result.exit_code is not None else phrase


def without_shepherd(record: Record) -> str:
    """One phrase for people: that the job's shepherd was killed, and what is unknown therefore; empty if it was not."""
    if not record["provenance"].get("shepherd_killed"):
        return ""
    ended = record["outcome"]
    phrase = "the job's own parent process (jobmeter-job) was killed; jobmeter followed the job without it"
    return (
        phrase
        if ended["exit_code"] is not None or ended["signal"] is not None
        else f"{phrase}, its exit code is unknown"
    )
