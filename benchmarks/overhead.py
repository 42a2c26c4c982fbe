"""What the tools themselves cost: their start, their sampling, and passing on a job's output."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from benchmarks.execute import empty_place, measure, run
from benchmarks.peers import Missing
from benchmarks.table import print_table, seconds, times
from benchmarks.tool import PYTHON, Tool, environment

BARE = [PYTHON, "-c", "pass"]
STREAM_BYTES = 10**9
STREAM = ["/usr/bin/head", "-c", str(STREAM_BYTES), "/dev/zero"]
_STARTS, _STREAMS = 12, 3


def show(tools: list[Tool], missing: Missing) -> None:
    starts = start_costs(tools, _STARTS)
    bare, con_duct = starts["bare python3"], starts.get("con-duct")
    print_table(
        f"CPU of `tool -- true`, the least of {_STARTS} runs",
        ["tool", "CPU", "to `python3 -c pass`", "to con-duct"],
        [[name, seconds(cpu), times(cpu, bare), times(cpu, con_duct)] for name, cpu in starts.items()],
    )
    sleeping = {tool.name: sleeping_cost(tool) for tool in tools}
    ours = sleeping.get("jobmeter")
    print_table(
        "The tool's own CPU over 500 sleeping processes, 20 s, 1 s interval, its start included",
        ["tool", "CPU", "less its start", "to jobmeter"],
        [
            [name, seconds(cpu), seconds(None if cpu is None else cpu - starts[name]), times(cpu, ours)]
            for name, cpu in sleeping.items()
        ],
    )
    rates = stream_seconds(tools, _STREAMS)
    plain = rates["bare"]
    print_table(
        f"1 GB of stdout into a pipe, first byte to last, the least of {_STREAMS} runs",
        ["tool", "time", "to bare"],
        [[name, seconds(took) if took else "not passed on", times(took, plain)] for name, took in rates.items()],
    )
    for name, why in missing.items():
        print(f"{name}: {why}")


def start_costs(tools: list[Tool], repeat: int) -> dict[str, float]:
    """Name → the least CPU seconds of the tool around `true`. The tools take turns."""
    least: dict[str, float] = {}
    for _ in range(repeat):
        for name, cpu in [("bare python3", run(BARE).cpu_seconds), *((tool.name, _start_cost(tool)) for tool in tools)]:
            least[name] = min(cpu, least.get(name, cpu))
    return least


def _start_cost(tool: Tool) -> float:
    with empty_place() as place:
        return run(tool.command(["/bin/true"], place)).cpu_seconds


def sleeping_cost(tool: Tool) -> float | None:
    """CPU of the tool alone: all that wait4 reports, less what the load reports of itself; None if that is unknown."""
    print(f"500 sleeping processes: {tool.name}", file=sys.stderr)
    try:
        seen = measure(tool, "sleepers-long")
    except TimeoutError:
        return None
    if seen.truth.cpu_seconds is None:
        return None
    return seen.finished.cpu_seconds - seen.truth.cpu_seconds


def stream_seconds(tools: list[Tool], repeat: int) -> dict[str, float | None]:
    """Name → the least seconds for 1 GB through the tool; None if the tool does not pass the job's stdout on."""
    least: dict[str, float | None] = {}
    for _ in range(repeat):
        for name, took in [("bare", _stream(STREAM)), *((tool.name, _stream_through(tool)) for tool in tools)]:
            before = least.get(name)
            least[name] = took if before is None else min(before, took or before)
    return least


def _stream_through(tool: Tool) -> float | None:
    with empty_place() as place:
        return _stream(tool.command(STREAM, place))


def _stream(command: list[str]) -> float | None:
    process = subprocess.Popen(
        command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    total, began, ended = 0, 0.0, 0.0
    with process.stdout as pipe:
        while got := len(os.read(pipe.fileno(), 1 << 20)):
            ended = time.monotonic()
            began = began or ended
            total += got
    process.wait()
    return ended - began if total >= STREAM_BYTES else None
