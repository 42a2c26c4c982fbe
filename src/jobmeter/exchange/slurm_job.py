"""Reads what `sacct` reports of a job as a whole: its state, how it ended and what it requested."""

from __future__ import annotations

import re

from jobmeter.exchange.cells import MOST_SECONDS, BadCell, amount, clock, count, number
from jobmeter.model import Outcome, Requirement, Status

_STATUS = {
    "COMPLETED": Status.COMPLETED,
    "FAILED": Status.FAILED,
    "BOOT_FAIL": Status.FAILED,
    "LAUNCH_FAILED": Status.FAILED,
    "TIMEOUT": Status.TIMEOUT,
    "DEADLINE": Status.TIMEOUT,
    "OUT_OF_MEMORY": Status.OOM,
    "CANCELLED": Status.CANCELLED,
    "PREEMPTED": Status.CANCELLED,
    "REVOKED": Status.CANCELLED,
    "NODE_FAIL": Status.LOST,
}
_UNFINISHED = {
    "PENDING", "RUNNING", "REQUEUED", "RESIZING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUE_HOLD",
    "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "SIGNALING",
}  # fmt: skip
_MEMORY = re.compile(r"(.*?)([nc]?)")
_NO_LIMIT = ("UNLIMITED", "Partition_Limit", "INFINITE")
_LAST_SIGNAL = 64

SacctRow = dict[str, str]
"""Cells of a line of `sacct -P`, by column in lower case; empty cells are absent."""


def state_of(own: SacctRow, steps: list[SacctRow]) -> str | None:
    """The state as Slurm writes it. If only steps have one: that of the first step that did not complete, if any."""
    rows = [own] if "state" in own else steps
    states = [row["state"] for row in rows if "state" in row]
    return next((state for state in states if _word(state) != "COMPLETED"), states[0] if states else None)


def still_runs(state: str | None) -> bool:
    return state is not None and _word(state) in _UNFINISHED


def outcome(state: str | None, own: SacctRow, steps: list[SacctRow]) -> Outcome:
    """How the job ended. Slurm writes `0:0` for a job that it ended itself: the signal is then in the row of a step."""
    code, signal = _ending([own, *steps] if own else steps)
    if state is None:
        status = Status.COMPLETED if not code and signal is None else Status.FAILED
    elif _word(state) in _STATUS:
        status = _STATUS[_word(state)]
    else:
        raise BadCell(f"State {state!r} is not a state of Slurm")
    if status == Status.FAILED and signal is not None:
        status = Status.KILLED
    if status == Status.COMPLETED:
        return Outcome(status, code or 0)
    return Outcome(status, code or None, signal)


def _word(state: str) -> str:
    """`CANCELLED` of `CANCELLED by 1000` and of `CANCELLED+`."""
    return state.split()[0].rstrip("+").upper()


def _ending(rows: list[SacctRow]) -> tuple[int | None, int | None]:
    """Exit code and signal, from the first row in which one of them is not 0."""
    last_code = None
    for row in rows:
        if "exitcode" not in row:
            continue
        code_text, _, signal_text = row["exitcode"].partition(":")
        code = last_code = count(code_text, "ExitCode")
        signal = count(signal_text or "0", "ExitCode")
        # 0:125 is Slurm's mark of an out-of-memory kill, not a signal.
        if 0 < signal <= _LAST_SIGNAL:
            return None, signal
        if code:
            return code, None
    return last_code, None


def requirement(row: SacctRow) -> Requirement:
    """What the job requested."""
    cpus = next((count(row[name], name) for name in ("reqcpus", "alloccpus", "ncpus") if name in row), None)
    return Requirement(
        cpus=cpus or None,
        memory_bytes=_memory(row, cpus),
        runtime_seconds=_limit(row),
    )


def _memory(row: SacctRow, cpus: int | None) -> int | None:
    """The memory requested: `4G` for the job (since 21.08), `4Gn` per node, `2Gc` per CPU. 0 is all memory: None."""
    match = _MEMORY.fullmatch(row.get("reqmem", ""))
    if match is None or not match[1]:
        return None
    text = f"{match[1]}M" if match[1].replace(".", "", 1).isdigit() else match[1]  # megabytes, sacct(1)
    memory = amount(text, "ReqMem")
    if match[2] == "c":
        return memory * cpus if cpus and memory else None
    if match[2] == "n":
        nodes = next((count(row[name], name) for name in ("nnodes", "allocnodes", "reqnodes") if name in row), 1)
        return memory * (nodes or 1) or None
    return memory or None


def _limit(row: SacctRow) -> float | None:
    if "timelimitraw" in row and row["timelimitraw"] not in _NO_LIMIT:
        return number(row["timelimitraw"], "TimelimitRaw", MOST_SECONDS / 60) * 60
    if "timelimit" in row and row["timelimit"] not in _NO_LIMIT:
        return clock(row["timelimit"], "Timelimit")
    return None
