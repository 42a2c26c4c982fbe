"""The findings of a run: over-use, waste, lack of memory, steady growth, incomplete figures and others."""

from __future__ import annotations

from collections.abc import Sequence

from jobmeter.analyse.finding import Finding
from jobmeter.analyse.gpu_findings import gpu_findings
from jobmeter.analyse.outcome import in_words, outcome_of, signal_name, without_shepherd
from jobmeter.analyse.overuse import Verdict, overuses, reached_limit
from jobmeter.analyse.resource import CPU, GPU, MEMORY, RUNTIME
from jobmeter.analyse.stalls import stall_findings
from jobmeter.analyse.stored_run import StoredRun, of_record
from jobmeter.analyse.timeline import WindowSample
from jobmeter.analyse.waste import wasted_requests
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.model import Status
from jobmeter.record.read import measured
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_WORDS = {MEMORY: "memory", CPU: "CPU", RUNTIME: "time", GPU: "GPUs"}
_FEW = 8
_GROWTH = 1.3
_STEADY = 0.9
SHORTEST_GROWTH = 8.0
"""Seconds. A job whose memory grows for less is loading, not leaking. No finding on a shorter run needs the windows."""
_POINTS = 20
"""About this many points are examined, evenly over the run."""
_THROTTLED = 0.05


def findings(record: Record, samples: Sequence[WindowSample] = ()) -> list[Finding]:
    """The findings of a run, problems first. Nothing is reported about a figure that was not measured."""
    run = of_record(record)
    collected = [
        *_out_of_memory(record, run),
        *_over(run),
        *_under(run),
        *_growth(samples),
        *_throttled(record),
        *stall_findings(record),
        *gpu_findings(record),
        *_left(record),
        *_shepherd_killed(record),
        *_incomplete(record),
    ]
    return sorted(collected, key=lambda finding: finding.severity != "problem")


def ending(record: Record) -> str:
    """How the run ended, in words; after an OOM, by the kernel's own count of kills where it is known."""
    result = outcome_of(record)
    kills = oom_kills(record)
    if result.status != Status.OOM:
        return in_words(result)
    how = f"killed by {signal_name(result.signal)}" if result.signal is not None else f"exit code {result.exit_code}"
    if kills:
        return f"{how}; the kernel's OOM killer did it" + (f" ({kills} kills)" if kills > 1 else "")
    return f"{how}; jobmeter ended it at its memory limit"


def oom_kills(record: Record) -> int:
    return int(measured(record, "cgroup_oom_kills").get("total", 0))


def _out_of_memory(record: Record, run: StoredRun) -> list[Finding]:
    kills = oom_kills(record)
    if run["status"] == MEMORY.limit_status:
        return [Finding("oom", "problem", f"It ran out of memory{_of_which(run)}")]
    if kills:
        processes = "a process" if kills == 1 else f"{kills} processes"
        return [Finding("oom", "problem", f"The kernel's OOM killer ended {processes} of the job, which went on.")]
    return []


def _of_which(run: StoredRun) -> str:
    requested = run.get(MEMORY.requested)
    if not requested:
        return "."
    if reached_limit(run, MEMORY):
        return f". Request more than {text(requested, 'bytes')}."
    return f", but not of the {text(requested, 'bytes')} that it requested: it met another limit."


def _over(run: StoredRun) -> list[Finding]:
    """Over-use, except of a run that ran out of memory: `_out_of_memory` reports that."""
    return [
        Finding(f"over_{verdict.resource.key}", "problem", _over_text(verdict))
        for verdict in overuses(run)
        if verdict.cause is None or verdict.resource is not MEMORY
    ]


def _over_text(verdict: Verdict) -> str:
    words, unit = _WORDS[verdict.resource], verdict.resource.unit
    requested = text(verdict.requested, unit)
    if verdict.cause is not None:
        return f"It was stopped at the {requested} that it requested."
    used = ("at least " if verdict.at_least else "") + text(verdict.used, unit)
    return f"It used more {words} than it requested: {used} of {requested} ({_share(verdict.used, verdict.requested)})."


def _share(used: float, requested: float) -> str:
    return text(100 * used / requested, "percent")


def _under(run: StoredRun) -> list[Finding]:
    """Requested amounts that were not used, and that other jobs could have used."""
    return [
        Finding(
            f"under_{waste.resource.key}",
            "hint",
            f"It used {_share(waste.used, waste.requested)} of the {_WORDS[waste.resource]} it requested: "
            f"{text(waste.used * waste.resource.each, waste.resource.unit)} of "
            f"{text(waste.requested * waste.resource.each, waste.resource.unit)}.",
        )
        for waste in wasted_requests([run])
    ]


def _growth(samples: Sequence[WindowSample]) -> list[Finding]:
    """Memory that grows along a straight line to the end, as a leak does."""
    points = _spread([(s.seconds, s.memory_bytes) for s in samples if s.memory_bytes is not None])
    # The start is left out: every job grows while it loads.
    points = points[len(points) // 5 :]
    if len(points) < _FEW or points[-1][0] - points[0][0] < SHORTEST_GROWTH:
        return []
    if points[0][1] <= 0 or points[-1][1] < _GROWTH * points[0][1]:
        return []
    slope, straight = line_through(points)
    if slope <= 0 or straight < _STEADY:
        return []
    per_hour = text(slope * 3600, "bytes")
    return [Finding("growth", "hint", f"Its memory grew steadily to the end, by {per_hour} an hour: a leak would.")]


def _spread(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """About `_POINTS` of the points, evenly spaced in time: windows are shorter at the start of a job than later."""
    chosen: list[tuple[float, float]] = []
    for point in points:
        if not chosen or point[0] - chosen[-1][0] >= points[-1][0] / _POINTS:
            chosen.append(point)
    return chosen


def line_through(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The slope of the least-squares line through the points, and its R² (1: all points are on the line)."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    across = sum((x - mean_x) ** 2 for x, _ in points)
    up = sum((y - mean_y) ** 2 for _, y in points)
    both = sum((x - mean_x) * (y - mean_y) for x, y in points)
    if not across or not up:
        return 0.0, 0.0
    return both / across, both * both / (across * up)


def _throttled(record: Record) -> list[Finding]:
    held = measured(record, "cgroup_throttled_seconds").get("total", 0)
    wall = record.get("wall_seconds") or 0
    if not wall or held < _THROTTLED * wall:
        return []
    return [Finding("throttled", "hint", f"Its CPU limit held it back for {text(held, 'seconds')}.")]


def _left(record: Record) -> list[Finding]:
    count = record["provenance"].get("left_running", 0)
    if not count or record["outcome"]["status"] == Status.DETACHED:
        return []
    processes = "1 process" if count == 1 else f"{count} processes"
    return [Finding("left", "problem", f"It left {processes} running, not measured to the end.")]


def _shepherd_killed(record: Record) -> list[Finding]:
    words = without_shepherd(record)
    return [Finding("shepherd", "problem", f"{words[0].upper()}{words[1:]}.")] if words else []


def _incomplete(record: Record) -> list[Finding]:
    failed = [
        f"{name}: {entry['failed']}"
        for name, entry in record["provenance"].get("collectors", {}).items()
        if "failed" in entry
    ]
    collected = [Finding("incomplete", "hint", f"A source failed while it was read: {reason}.") for reason in failed]
    if record["outcome"]["status"] == Status.LOST and not record["provenance"].get("shepherd_killed"):
        words = "jobmeter was killed before the job ended: the figures are those of the windows that were written."
        collected.append(Finding("incomplete", "problem", words))
    return collected
