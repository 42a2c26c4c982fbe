"""`python -m benchmarks.store [N [DIR]]`: how long commands take on a store of N runs (default a million)."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from benchmarks.synthetic import generate
from benchmarks.table import mib, print_table, seconds, times
from benchmarks.tool import ROOT

COMMANDS = (
    ("ls",),
    ("ls", "--where", 'memory_peak_bytes > 4GiB and status = "oom"'),
    ("ls", "--where", "memory_peak_bytes > 900GiB"),
    ("ls", "--label", "team=none"),
    ("ls", "--sort", "memory_peak_bytes"),
    ("show",),
    ("show", "train-full"),
    ("stats",),
    ("check", "--exit-zero"),
    ("check", "--exit-zero", "--since", "500d"),
)
EXPORTS = (
    ("export",),
    ("export", "--windows"),
    ("export", "--windows", "--format", "jsonl"),
)
LIMIT = 1.0
RATE = 20_000
PARSING = 1.0
"""Making the index takes at most so many times as long as one process takes to parse all journals with `json`."""
_REPEATS = 3


class Cost(NamedTuple):
    seconds: float
    bytes: int  # peak memory


def main(arguments: list[str]) -> int:
    count = int(arguments[0]) if arguments else 1_000_000
    place = arguments[1] if len(arguments) > 1 else tempfile.mkdtemp(prefix="jobmeter-store-")
    if not os.path.isdir(f"{place}/journal"):
        print(f"writing {count:,} runs to {place}", file=sys.stderr)
        generate(count, place)
    for end in ("", "-wal", "-shm"):
        if os.path.exists(f"{place}/index.db{end}"):
            os.unlink(f"{place}/index.db{end}")
    first = call(("ls",), place)
    rate, ratio = count / first.seconds, first.seconds / parsing_seconds(place)
    print_table(
        f"Indexing {count:,} runs", ["what", "measured", "limit", "of limit"],
        [["times parsing", f"{ratio:.2f}", f"≤ {PARSING:g}", times(ratio, PARSING)],
         ["runs a second", f"{rate:,.0f}", f"≥ {RATE:,}", times(rate, RATE)], ["took", seconds(first.seconds), "", ""],
         ["memory", mib(first.bytes), "", ""], ["index", mib(os.path.getsize(f"{place}/index.db")), "", ""]],
    )  # fmt: skip
    print_exports(count, place)
    rows = []
    for command in COMMANDS:
        cost = min(call(command, place) for _ in range(_REPEATS))
        rows.append([" ".join(command), seconds(cost.seconds), f"{LIMIT:g} s", times(cost.seconds, LIMIT)])
    print_table(f"Commands on {count:,} runs", ["command", "best of 3", "limit", "of limit"], rows)
    return 0


def parsing_seconds(place: str) -> float:
    """How long one process takes to parse all journals line by line, by timing one: a measure of the machine."""
    sizes = {entry.path: entry.stat().st_size for entry in os.scandir(f"{place}/journal")}
    largest = max(sizes, key=lambda path: sizes[path])
    began = time.monotonic()
    with open(largest, "rb") as file:
        for line in file:
            json.loads(line)
    return (time.monotonic() - began) * sum(sizes.values()) / sizes[largest]


def print_exports(count: int, place: str) -> None:
    """Print how many runs a second are exported, as summaries and as whole time series."""
    rows = []
    for command in EXPORTS:
        cost = min(call(command, place) for _ in range(_REPEATS))
        rate = count / cost.seconds
        rows.append([" ".join(command), f"{rate:,.0f}", f"≥ {RATE:,}", times(rate, RATE), mib(cost.bytes)])
    print_table(f"Exporting {count:,} runs", ["command", "runs a second", "limit", "of limit", "memory"], rows)


def call(command: tuple[str, ...], place: str) -> Cost:
    """The cost of `jobmeter COMMAND` on the store in `place`, from start to end."""
    settings = {**os.environ, "PYTHONPATH": f"{ROOT}/src", "JOBMETER_STORE": place}
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "jobmeter", *command], env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"jobmeter {' '.join(command)}: exit code {process.returncode}")
    return Cost(took, _bytes(used))


def _bytes(used: resource.struct_rusage) -> int:
    return used.ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
