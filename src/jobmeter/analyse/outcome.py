"""How a run ended, from what the kernel and jobmeter know of it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from jobmeter.model import Outcome

if TYPE_CHECKING:
    from jobmeter.record.types import Record


def outcome(wait_status: int | None, *, ended_by: str | None, oom_kills: int) -> Outcome:
    """The outcome of a job whose main process ended with `wait_status` (None: unknown).

    `ended_by` is `timeout`, `oom` or `cancelled` when jobmeter ended it, or handed on the
    signal that did. `oom_kills` is the kernel's own count for this job: an exit code
    of 137 alone says nothing.
    """
    if wait_status is None:
        return Outcome(ended_by or "lost")
    code, number = None, None
    if os.WIFSIGNALED(wait_status):
        number = os.WTERMSIG(wait_status)
    else:
        code = os.WEXITSTATUS(wait_status)
    if ended_by in ("timeout", "oom"):
        status = ended_by
    elif code == 0:
        status = "completed"
    elif oom_kills > 0:
        status = "oom"
    elif ended_by is not None:
        status = ended_by
    else:
        status = "killed" if number is not None else "failed"
    return Outcome(status, code, number)


def outcome_of(record: Record) -> Outcome:
    """How the run of this record ended."""
    return Outcome(**record["outcome"])


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def in_words(result: Outcome) -> str:
    """One phrase for people: `completed`, `failed with exit code 3`, `killed by SIGSEGV`."""
    if result.status == "completed":
        return "completed" if result.exit_code is not None else "ended (exit code unknown: not our child)"
    if result.status == "failed" and result.exit_code == 0:
        return "failed: it did not make all its outputs"
    if result.status == "failed":
        return f"failed with exit code {result.exit_code}"
    how = signal_name(result.signal) if result.signal is not None else f"exit code {result.exit_code}"
    if result.status == "killed":
        return f"killed by {how}"
    phrase = {
        "oom": "out of memory",
        "timeout": "stopped at its runtime limit",
        "cancelled": "cancelled",
        "lost": "lost: nobody was there to be told of its end",
        "detached": "detached (it went on)",
        "running": "still running",
    }[result.status]
    return f"{phrase} ({how})" if result.signal is not None or result.exit_code is not None else phrase


def without_shepherd(record: Record) -> str:
    """One phrase for people: that the job's shepherd was killed, and what is not known for it; empty if it was not."""
    if not record["provenance"].get("shepherd_killed"):
        return ""
    ended = record["outcome"]
    phrase = "the job's own parent process (jobmeter-job) was killed; jobmeter followed the job without it"
    return (
        phrase
        if ended["exit_code"] is not None or ended["signal"] is not None
        else f"{phrase}, its exit code is unknown"
    )
