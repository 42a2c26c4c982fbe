"""What a signal to the tool does to the job and to the report, and which exit codes come through."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.adapters import Jobmeter
from benchmarks.execute import empty_place, end_all, read_report, read_truth, run, start, wait_for_end
from benchmarks.peers import Missing
from benchmarks.table import print_table
from benchmarks.tool import Tool, load_command

JOBS = {
    "exit 0": (["/bin/sh", "-c", "exit 0"], 0),
    "exit 3": (["/bin/sh", "-c", "exit 3"], 3),
    "not found": (["/nonexistent/command"], 127),
    "SIGKILL": (["/bin/sh", "-c", "kill -KILL $$"], 137),
    "SIGSEGV": (["/bin/sh", "-c", "kill -SEGV $$"], 139),
}
_NOT_THE_TOOLS = ("truth", "output")
_BEFORE, _AFTER = 2.5, 4.0
"""Seconds that the job runs before the signal, and that it has to end after it."""


def show(tools: list[Tool], missing: Missing) -> None:
    rows = []
    for tool in tools:
        print(f"signals: {tool.name}", file=sys.stderr)
        rows.append([tool.name, *_after(tool, signal.SIGTERM), *_after(tool, signal.SIGKILL)])
    print_table(
        "A signal to the tool while its job runs",
        ["tool", "SIGTERM: job", "SIGTERM: left", "SIGKILL: job", "SIGKILL: left"],
        rows,
    )
    print_table(
        "The exit code of the tool (a shell's: 128+N for signal N)",
        ["tool", *(f"{name} ({expected})" for name, (_, expected) in JOBS.items())],
        [[tool.name, *(_code(tool, job, expected) for job, expected in JOBS.values())] for tool in tools],
    )
    for name, why in missing.items():
        print(f"{name}: {why}")


def _after(tool: Tool, number: signal.Signals) -> tuple[str, str]:
    """Whether the job ended, and what report is left."""
    with empty_place() as place:
        process = start(tool.command(load_command("hang", place), place))
        deadline = time.monotonic() + 20
        while len(read_truth(place).pids) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(_BEFORE)
        pids = read_truth(place).pids
        os.kill(process.pid, number)
        ended = "ends" if wait_for_end(pids, _AFTER) else "goes on"
        stopped = _stops(process, 2)
        left = _left(tool, place)
        end_all(pids)
        if not (stopped or _stops(process, 10)):
            process.kill()
            process.wait()
        return ended, left if stopped else f"{left}, and waits on"


def _stops(process: subprocess.Popen[bytes], patience: float) -> bool:
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def _left(tool: Tool, place: Path) -> str:
    reading, _ = read_report(tool, place)
    if reading is not None and reading != type(reading)():
        return "report"
    if isinstance(tool, Jobmeter):
        lines = [line for path in place.rglob("*.jsonl") for line in path.read_bytes().splitlines()]
        return f"journal, {sum(line.startswith(b'[') for line in lines)} windows" if lines else "nothing"
    sizes = [path.stat().st_size for path in place.rglob("*") if path.is_file() and path.name not in _NOT_THE_TOOLS]
    return f"samples ({sum(sizes)} bytes)" if sum(sizes) else "nothing"


def _code(tool: Tool, job: list[str], expected: int) -> str:
    with empty_place() as place:
        try:
            code = run(tool.command(job, place), patience=20).code
        except TimeoutError:
            return "hangs"
    return str(code) if code == expected else f"**{code}**"
