"""Memory over time: what the loads `level-…` of loads.py really held, compared with what their records say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.execute import empty_place, run
from benchmarks.table import mib, print_table, times
from benchmarks.tool import LOADS, PYTHON, Tool

KINDS = ("constant", "step-up", "step-down", "burst", "ramp")
SECONDS = (0.5, 3.0, 9.0)
HOUR, GIB = 3600.0, 1 << 30


class Levels(NamedTuple):
    """Levels in bytes. `most_minimum` is the most that the minimum can be: the interpreter before the load begins."""

    mean: float
    peak: float
    most_minimum: float
    gib_hours: float


def true_levels(course: dict[str, float], record: dict[str, Any]) -> Levels:
    """The true levels: what the load reported, over the wall time of its record, counted as the record's sources do."""
    mean, peak = (record["usage"][f"memory_{name}_bytes"]["from"] for name in ("mean", "peak"))
    own = course[_own(mean)]
    wall = record["wall_seconds"]
    # Before and after the load itself, only the interpreter holds memory.
    average = course["byte_seconds"] / wall + own
    return Levels(average, course["most"] + course[_own(peak)], own, average * wall / HOUR / GIB)


def reported_levels(record: dict[str, Any]) -> Levels:
    mean, peak, minimum = (record["usage"][f"memory_{name}_bytes"]["value"] for name in ("mean", "peak", "min"))
    return Levels(mean, peak, minimum, mean * record["wall_seconds"] / HOUR / GIB)


def _own(key: str) -> str:
    """The field of the load's report with the interpreter's own memory, counted as this source counts it."""
    if key.startswith("cgroup_"):
        return "charged"
    return "shared_once" if key in ("proc_memory", "proc_pss_total") else "resident"


def show(tools: list[Tool]) -> None:
    """Print mean and peak of every course as jobmeter and con-duct report them, to the truth, and the minimum."""
    chosen = [tool for tool in tools if tool.name.startswith("jobmeter") or tool.name == "con-duct"]
    rows = []
    for seconds in SECONDS:
        for kind in KINDS:
            print(f"level-{kind}, {seconds:g} s", file=sys.stderr)
            cells = []
            for tool in chosen:
                true, cell = _measure(tool, kind, seconds)
                cells.append(cell)
            rows.append([kind, f"{seconds:g} s", mib(true), *cells])
    head = ["course", "for", "mean", *(f"{tool.name}: mean, peak, minimum" for tool in chosen)]
    print_table("Memory over time: the ratio to the truth of mean and peak, and the minimum", head, rows)
    print("The minimum is of the interpreter, before it holds anything. GiB-hours are the mean times the wall time.")


def _measure(tool: Tool, kind: str, seconds: float) -> tuple[float | None, str]:
    with empty_place() as place:
        run(tool.command([PYTHON, LOADS, f"level-{kind}", str(place), str(seconds)], place))
        course = json.loads((place / "truth").read_text())
        if tool.name == "con-duct":
            return _con_duct(course, place)
        record = json.loads((place / "report.json").read_text())
    true, reported = true_levels(course, record), reported_levels(record)
    cell = f"{times(reported.mean, true.mean)}, {times(reported.peak, true.peak)}, {mib(reported.most_minimum)}"
    return true.mean, cell


def _con_duct(course: dict[str, float], place: Path) -> tuple[float | None, str]:
    summary = json.loads((place / "duct_info.json").read_text())["execution_summary"]
    mean = course["byte_seconds"] / summary["wall_clock_time"] + course["resident"]
    peak = course["most"] + course["resident"]
    return mean, f"{times(summary['average_rss'], mean)}, {times(summary['peak_rss'], peak)}, –"
