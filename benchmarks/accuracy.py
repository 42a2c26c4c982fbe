"""Known loads: what each tool reports of them, compared with the truth."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from benchmarks import levels
from benchmarks.execute import Measured, Truth, empty_place, measure, read_report, read_truth, run
from benchmarks.group import anonymous_peak
from benchmarks.peers import Missing
from benchmarks.table import mib, print_table, seconds, times
from benchmarks.tool import Reading, Tool, load_command


class Quantity(NamedTuple):
    name: str
    field: str  # its name in Reading and in Truth
    mark: str
    show: Callable[[float | None], str]


CPU = Quantity("CPU", "cpu_seconds", "cpu_mark", seconds)
MEMORY = Quantity("memory", "memory_bytes", "memory_mark", mib)
WRITTEN = Quantity("written", "written_bytes", "written_mark", mib)

BRIEF = ["/bin/sh", "-c", "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done"]
"""A command of some 5 ms; its truth is what the kernel reports of bare runs."""
_OWN_MARK = "; while read key kib unit; do [ $key = VmHWM: ] && echo $kib; done < /proc/self/status"
# Not maxrss from wait4 of a bare run: it begins at the size of the parent process, which is this program.
_REPEAT = 7

ROWS: tuple[tuple[str, str, Quantity], ...] = (
    ("300 processes of 20 ms, in turn", "short-sequential", CPU),
    ("300 processes of 20 ms, 4 at a time", "short-parallel", CPU),
    ("50 children nobody waits for", "unwaited", CPU),
    ("500 MiB for 0.3 s, then idle", "burst", MEMORY),
    ("300 MiB and 4 forked readers", "shared", MEMORY),
    ("setsid daemon, launcher stays", "daemon-launcher-stays", CPU),
    ("setsid daemon, launcher stays", "daemon-launcher-stays", MEMORY),
    ("setsid daemon, launcher exits", "daemon-launcher-exits", CPU),
    ("setsid daemon, launcher exits", "daemon-launcher-exits", MEMORY),
    ("a process named `a) R 1 (b c`", "odd-name", CPU),
    ("500 sleeping processes", "sleepers", MEMORY),
    ("4 threads on all cores", "threads", CPU),
    ("200 MiB written", "write", WRITTEN),
    ("a command of 5 ms", "brief", CPU),
    ("a command of 5 ms", "brief", MEMORY),
)

Results = dict[tuple[str, str], Measured]
"""(load, tool) → what was measured."""


def show(tools: list[Tool], missing: Missing, wanted: list[str] | None = None) -> None:
    """Run every load, or those wanted, once under every tool, and print what the tools report."""
    results = Results()
    chosen = [row for row in ROWS if not wanted or row[1] in wanted]
    loads = dict.fromkeys(load for _, load, _ in chosen)
    constants = {"sleepers": _sleepers_truth()} if "sleepers" in loads else {}
    for load in loads:
        for tool in tools:
            print(f"{load}: {tool.name}", file=sys.stderr)
            try:
                results[load, tool.name] = _measure(tool, load)
            except (OSError, TimeoutError) as error:
                print(f"{load}: {tool.name}: {error}", file=sys.stderr)
    head = ["load", "of it", "truth", *(tool.name for tool in tools)]
    rows = [_row(text, load, quantity, tools, results, constants.get(load)) for text, load, quantity in chosen]
    print_table("Known loads: the ratio to the truth, and the value", head, rows)
    print("`≥`: the tool itself says “at least”; `~`: it says “sampled”; –: it does not report this.")
    for name, why in missing.items():
        print(f"{name}: {why}")
    if not wanted or "levels" in wanted:
        levels.show(tools)


def _measure(tool: Tool, load: str) -> Measured:
    if load != "brief":
        return measure(tool, load)
    # For such a short command, take the least of several runs; its truth is the least of bare runs in turn with them.
    seen, bare = [], []
    for _ in range(_REPEAT):
        bare.append(run(BRIEF).cpu_seconds)
        seen.append(_measure_brief(tool))
    least = min(seen, key=lambda one: _cpu_or_none(one.reading))
    return least._replace(truth=Truth(min(bare), _brief_memory(), None, (), False))


def _cpu_or_none(reading: Reading | None) -> float:
    return float("inf") if reading is None or reading.cpu_seconds is None else reading.cpu_seconds


def _measure_brief(tool: Tool) -> Measured:
    with empty_place() as place:
        finished = run(tool.command(BRIEF, place))
        reading, why_not = read_report(tool, place)
        return Measured(finished, Truth(None, None, None, (), False), reading, why_not)


def _row(
    text: str, load: str, quantity: Quantity, tools: list[Tool], results: Results, constant: Truth | None
) -> list[str]:
    by_tool = {tool.name: results[load, tool.name] for tool in tools if (load, tool.name) in results}
    truths = {name: _true(seen, quantity, constant) for name, seen in by_tool.items()}
    usual = [truth for truth in truths.values() if truth is not None]
    # If a tool ended the load before it reported its truth, the truth of the other runs counts.
    typical = statistics.median(usual) if usual else None
    cells = [
        _cell(by_tool[tool.name], quantity, truths[tool.name] or typical) if tool.name in by_tool else "failed"
        for tool in tools
    ]
    return [text, quantity.name, quantity.show(typical), *cells]


def _true(seen: Measured, quantity: Quantity, constant: Truth | None) -> float | None:
    """The truth of this run if the load reported all of it, else that of bare runs, `constant`."""
    own: float | None = getattr(seen.truth, quantity.field)
    if own is not None and not (seen.truth.pids and seen.truth.memory_bytes is None):
        return own
    return getattr(constant, quantity.field) if constant else None


def _cell(seen: Measured, quantity: Quantity, truth: float | None) -> str:
    if seen.reading is None:
        return seen.why_not
    value: float | None = getattr(seen.reading, quantity.field)
    if value is None:
        return "–"
    mark = getattr(seen.reading, quantity.mark)
    return f"{times(value, truth)} {mark}{quantity.show(value)}"


def _brief_memory() -> int:
    marked = subprocess.run([*BRIEF[:2], BRIEF[2] + _OWN_MARK], capture_output=True, text=True)
    return int(marked.stdout) * 1024


def _sleepers_truth() -> Truth:
    with empty_place() as place:
        held = anonymous_peak(load_command("sleepers", place), lambda: read_truth(place).ready)
    return Truth(None, held, None, (), False)
