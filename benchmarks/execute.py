"""Runs a tool once, and returns what the kernel reports about it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.tool import LOADS, Reading, Tool, environment, load_command

PATIENCE = 90.0


class Finished(NamedTuple):
    """One run of a command, as wait4 reports it."""

    code: int  # as a shell shows it: 128+N for signal N
    wall_seconds: float
    cpu_seconds: float  # of the command and every descendant that was waited for
    maxrss_bytes: int


class Truth(NamedTuple):
    """What a load really used, as it reports itself; None where it reports nothing."""

    cpu_seconds: float | None
    memory_bytes: float | None
    written_bytes: float | None
    pids: tuple[int, ...]
    ready: bool


@contextmanager
def empty_place() -> Iterator[Path]:
    """A directory that any user may write in."""
    place = Path(tempfile.mkdtemp(prefix="jobmeter-bench-"))
    place.chmod(0o777)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run(command: list[str], *, patience: float = PATIENCE) -> Finished:
    """Run a command to its end, and discard its output. After `patience` seconds, kills it and raises TimeoutError."""
    began = time.monotonic()
    process = start(command)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() - began > patience:
            process.kill()
            process.wait()
            raise TimeoutError(f"did not end within {patience:.0f} s")
        time.sleep(0.002)
    process.returncode = 0  # reaped here, not by Popen
    code = os.waitstatus_to_exitcode(status)
    return Finished(
        code if code >= 0 else 128 - code,
        time.monotonic() - began,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
    )


def start(command: list[str]) -> subprocess.Popen[bytes]:
    null = subprocess.DEVNULL
    return subprocess.Popen(command, env=environment(), stdin=null, stdout=null, stderr=null)


def read_truth(place: Path) -> Truth:
    try:
        lines = [json.loads(line) for line in (place / "truth").read_text().splitlines()]
    except OSError:
        lines = []

    def values_of(word: str) -> list[float]:
        return [line[word] for line in lines if word in line]

    cpu = values_of("cpu")
    return Truth(
        sum(cpu) if cpu else None,
        max(values_of("memory"), default=None),
        max(values_of("written"), default=None),
        tuple(map(int, values_of("pid"))),
        bool(values_of("ready")),
    )


class Measured(NamedTuple):
    """One load under one tool: what the tool reported, and the truth of the same run."""

    finished: Finished
    truth: Truth
    reading: Reading | None
    why_not: str = ""


def measure(tool: Tool, load: str) -> Measured:
    """Run a load under a tool, and wait for the processes that the load left running."""
    with empty_place() as place:
        finished = run(tool.command(load_command(load, place), place))
        wait_for_end(read_truth(place).pids, 10)
        reading, why_not = read_report(tool, place)
        return Measured(finished, read_truth(place), reading, why_not)


def read_report(tool: Tool, place: Path) -> tuple[Reading | None, str]:
    try:
        return tool.read(place), ""
    except (OSError, ValueError, KeyError, IndexError) as error:
        return None, f"no report ({type(error).__name__})"


def running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def wait_for_end(pids: tuple[int, ...], patience: float) -> bool:
    """True when all have ended within `patience` seconds."""
    end = time.monotonic() + patience
    while any(map(running, pids)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def end_all(pids: tuple[int, ...]) -> None:
    """Kill the processes that a load reported, but none that merely has the pid of one."""
    for pid in pids:
        if running(pid) and _is_load(pid):
            os.kill(pid, signal.SIGKILL)


def _is_load(pid: int) -> bool:
    # Pids are reused: this may be another process by now.
    try:
        return LOADS.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
