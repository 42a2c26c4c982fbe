"""The budgets of `jobmeter run`: the figure that is measured now for each, and its limit."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.adapters import Jobmeter, JobmeterAsUser
from benchmarks.execute import empty_place, read_truth, run, start, wait_for_end
from benchmarks.overhead import sleeping_cost, start_costs, stream_seconds
from benchmarks.peers import Missing
from benchmarks.table import print_table
from benchmarks.tool import ROOT, VENV, Tool, environment, load_command

RSS_LIMIT = 30e6
_AS_FAST = 1.05
"""A ratio up to this counts as no slower, on a machine that others use too."""


class Budget(NamedTuple):
    what: str
    figure: float | None  # None: could not be measured here
    limit: float
    text: str  # the figure as it is printed

    def row(self) -> list[str]:
        if self.figure is None:
            return [self.what, "–", f"{self.limit:g}", "–", "not measured"]
        used = self.figure / self.limit
        return [self.what, self.text, f"{self.limit:g}", f"{used:.2f}", "ok" if used <= 1 else "over"]


def show(tools: list[Tool], missing: Missing) -> None:
    by_name = {tool.name: tool for tool in tools}
    budgets = [
        _start(),
        *_sampling(),
        *_sleeping(by_name),
        *_memory(),
        _journal(),
        _stdout(),
        *_blocks(),
    ]
    print_table("Budgets of `jobmeter run`", ["what", "measured", "limit", "of limit", ""], [b.row() for b in budgets])
    for name, why in missing.items():
        print(f"{name}: {why}")


def _start() -> Budget:
    print("start-up", file=sys.stderr)
    cpu = start_costs([Jobmeter(report=False)], 20)
    ours, bare = cpu["jobmeter"], cpu["bare python3"]
    return Budget("start-up CPU, to `python3 -c pass`", ours / bare, 4.5, f"{ours / bare:.2f}× ({ours * 1000:.0f} ms)")


def _blocks() -> list[Budget]:
    """An empty block of `jobmeter.measure`, and its import with the first block, compared with a start of Python."""
    print("blocks", file=sys.stderr)
    python = VENV / "bin" / "python"
    command = [str(python if python.exists() else sys.executable), "-m", "benchmarks.blocks"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    if done.returncode != 0:
        return [Budget("empty block of `measure`, µs", None, 150, "")]
    seconds = json.loads(done.stdout)
    block, imported, bare = seconds["block"], seconds["import"], seconds["bare"]
    return [
        Budget("empty block of `measure`, µs", block * 1e6, 150, f"{block * 1e6:.0f} µs ({block / bare:.4f}× a start)"),
        Budget(
            "import of `measure` and first block, ms of CPU",
            imported * 1e3,
            40,
            f"{imported * 1e3:.0f} ms ({imported / bare:.2f}× a start)",
        ),
    ]


def _sampling() -> list[Budget]:
    """The cost of one sample of 500 processes, compared with psutil and `ps` on the same processes."""
    print("sampling", file=sys.stderr)
    with empty_place() as place:
        process = start(load_command("sleepers-long", place))
        while not read_truth(place).ready:
            time.sleep(0.05)
        costs = {way: _sample_cost(way, process.pid) for way in ("jobmeter", "psutil", "ps")}
        process.wait()
    ours = costs["jobmeter"]
    budgets = []
    for way, limit in (("psutil", 1 / 8), ("ps", 1 / 5)):
        other = costs[way]
        ratio = ours / other if ours and other else None
        text = f"{ratio:.3f}× ({ours * 1e6:.1f} to {other * 1e6:.1f} µs)" if ratio and ours and other else ""
        budgets.append(Budget(f"sample of a process, to {way}", ratio, limit, text))
    return budgets


def _sample_cost(way: str, pid: int) -> float | None:
    python = VENV / "bin" / "python"
    command = [str(python if python.exists() else sys.executable), "-m", "benchmarks.sampling", way, str(pid), "10"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    if done.returncode:
        print(f"sampling: {way}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return float(done.stdout)


def _sleeping(tools: dict[str, Tool]) -> list[Budget]:
    budgets = []
    for tool, where, limit in (
        (Jobmeter(report=False), "in a cgroup", 0.1),
        (JobmeterAsUser(report=False), "by /proc", 0.4),
    ):
        what = f"CPU over 500 sleeping processes, 20 s, {where}"
        whole = sleeping_cost(tool) if tool.name in tools else None
        if whole is None:
            budgets.append(Budget(what, None, limit, ""))
            continue
        own = whole - start_costs([tool], 5)[tool.name]
        budgets.append(Budget(what, own, limit, f"{own:.3f} s ({whole:.3f} s with its start)"))
    return budgets


def _memory() -> list[Budget]:
    """The meter's memory while 20,000 processes come and go, and its growth."""
    print("20,000 processes", file=sys.stderr)
    tool = Jobmeter(report=False)
    tool.options = (*tool.options, "--interval", "0.05")
    sizes = []
    with empty_place() as place:
        process = start(tool.command(load_command("churn", place), place))
        while process.poll() is None:
            if read_truth(place).pids:
                sizes.append(_field(process.pid, "VmRSS"))
            time.sleep(0.1)
    positive_sizes = [size for size in sizes if size]
    if len(positive_sizes) < 8:
        return [Budget("the meter's memory", None, RSS_LIMIT, "")]
    early, late = max(positive_sizes[: len(positive_sizes) // 4]), max(positive_sizes)
    return [
        Budget("the meter's memory, bytes", late, RSS_LIMIT, f"{late / 1e6:.1f} MB"),
        Budget("its growth over 20,000 processes", late / early, _AS_FAST, f"{late / early:.3f}×"),
    ]


def _field(pid: int, name: str) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)


def _journal() -> Budget:
    """Bytes between the header and the record, per window."""
    print("journal", file=sys.stderr)
    tool = Jobmeter(report=False)
    tool.options = (*tool.options, "--interval", "0.1", "--window", "1")
    with empty_place() as place:
        run(tool.command([*load_command("steady", place), "10"], place))
        wait_for_end(read_truth(place).pids, 5)
        (path,) = (place / "store" / "journal").glob("*.jsonl")
        lines = path.read_bytes().splitlines(keepends=True)
    between = [line for line in lines if not line.startswith((b'{"schema"', b'{"record"'))]
    windows = sum(line.startswith(b"[") for line in between)
    size = sum(map(len, between)) / max(windows, 1)
    values = sum(len(line) for line in between if line.startswith(b"[")) / max(windows, 1)
    text = f"{size:.0f} ({values:.0f} of values, the rest names of columns)"
    return Budget("journal, bytes a window", size, 200, text)


def _stdout() -> Budget:
    print("stdout", file=sys.stderr)
    took = stream_seconds([Jobmeter()], 12)
    ours, bare = took["jobmeter"], took["bare"]
    ratio = ours / bare if ours and bare else None
    return Budget("1 GB of stdout, to bare", ratio, _AS_FAST, f"{ratio or 0:.2f}×")
