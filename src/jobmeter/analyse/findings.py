"""What of a run is worth telling: over-use, waste, want of memory, steady growth, figures that are incomplete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.analyse.check import is_over_cpus
from jobmeter.analyse.outcome import in_words, signal_name, without_shepherd
from jobmeter.analyse.timeline import Sample
from jobmeter.model import Outcome, Quality, Record
from jobmeter.units import text

_WASTE = 0.5
"""A run that used less of what it asked for than this share left much unused."""
_LONG = 10.0
"""Seconds below which waste is not worth telling."""
_FEW = 8
_GROWTH = 1.3
_STEADY = 0.9
_THROTTLED = 0.05


class Finding(NamedTuple):
    """One thing to tell."""

    # oom, over_memory, over_cpus, over_runtime, under_memory, under_cpus, growth, throttled, left, shepherd, incomplete
    kind: str
    severity: str  # problem or hint
    text: str


def findings(record: Record, samples: Sequence[Sample] = ()) -> list[Finding]:
    """What stands out, problems first. Nothing is told of a figure that was not measured."""
    found = [
        *_out_of_memory(record),
        *_over(record),
        *_under(record),
        *_growth(samples),
        *_throttled(record),
        *_left(record),
        *_shepherd_killed(record),
        *_incomplete(record),
    ]
    return sorted(found, key=lambda finding: finding.severity != "problem")


def ending(record: Record) -> str:
    """How the run ended, in words, by the kernel's own count where it is known."""
    result = Outcome(**record["outcome"])
    kills = oom_kills(record)
    if result.status != "oom":
        return in_words(result)
    how = f"killed by {signal_name(result.signal)}" if result.signal is not None else f"exit code {result.exit_code}"
    if kills:
        return f"{how}; the kernel's OOM killer did it" + (f" ({kills} kills)" if kills > 1 else "")
    return f"{how}; jobmeter ended it at the memory limit it was to keep"


def oom_kills(record: Record) -> int:
    return int(record["measurements"].get("cgroup_oom_kills", {}).get("total", 0))


def value(record: Record, name: str) -> float | None:
    """A headline figure; None when it was not measured."""
    found: float | None = record["usage"].get(name, {}).get("value")
    return found


def _out_of_memory(record: Record) -> list[Finding]:
    kills = oom_kills(record)
    if record["outcome"]["status"] == "oom":
        asked = record.get("requirement", {}).get("memory_bytes")
        hint = f" Ask for more than {text(asked, 'bytes')}." if asked else ""
        return [Finding("oom", "problem", f"It ran out of memory.{hint}")]
    if kills:
        who = "a process" if kills == 1 else f"{kills} processes"
        return [Finding("oom", "problem", f"The kernel's OOM killer ended {who} of the job, which went on.")]
    return []


def _uses(record: Record) -> list[tuple[str, str, str, float | None, float | None]]:
    """(name, in words, unit, used, asked for)"""
    asked = record.get("requirement", {})
    cpus = asked.get("cpus")
    return [
        ("memory", "memory", "bytes", value(record, "memory_peak_bytes"), asked.get("memory_bytes")),
        ("cpus", "CPU", "percent", value(record, "cpu_mean_percent"), cpus * 100 if cpus else None),
        ("runtime", "time", "seconds", record.get("wall_seconds"), asked.get("runtime_seconds")),
    ]


def _over(record: Record) -> list[Finding]:
    found = []
    for name, words, unit, used, asked in _uses(record):
        is_over = used is not None and asked and used > asked
        if name == "cpus":
            # As `check` judges it and shows it: by the mean, or by a peak, which is never below the mean.
            is_over, used = _is_over_cpus(record), value(record, "cpu_peak_percent") or used
        if is_over and used is not None and asked:
            share = f"{text(used, unit)} of {text(asked, unit)} ({used / asked:.0%})"
            found.append(Finding(f"over_{name}", "problem", f"It used more {words} than it asked for: {share}."))
    return found


def _is_over_cpus(record: Record) -> bool:
    requested = record.get("requirement", {}).get("cpus")
    known = {name: value(record, name) for name in ("cpu_mean_percent", "cpu_peak_percent")}
    row = {**known, "wall_seconds": record.get("wall_seconds"), "enforced": record.get("enforced") or ()}
    return bool(requested) and is_over_cpus(row, requested)


def _under(record: Record) -> list[Finding]:
    """Waste of what others could have used; too much time asked for costs nobody."""
    if record["outcome"]["status"] != "completed" or (record.get("wall_seconds") or 0) < _LONG:
        return []
    at_least = {
        "memory": record["usage"].get("memory_peak_bytes", {}).get("quality"),
        "cpus": record["usage"].get("cpu_seconds", {}).get("quality"),
    }
    return [
        Finding(
            f"under_{name}",
            "hint",
            f"It used {used / asked:.0%} of the {words} it requested: {text(used, unit)} of {text(asked, unit)}.",
        )
        for name, words, unit, used, asked in _uses(record)[:2]
        if used is not None and asked and used < asked * _WASTE and at_least[name] != Quality.AT_LEAST.value
    ]


def _growth(samples: Sequence[Sample]) -> list[Finding]:
    """Memory that grows along a straight line to the end, as a leak does."""
    points = [(s.seconds, s.memory_bytes) for s in samples if s.memory_bytes is not None]
    # The start is left out: every job grows while it loads.
    points = points[len(points) // 5 :]
    if len(points) < _FEW or points[0][1] <= 0 or points[-1][1] < _GROWTH * points[0][1]:
        return []
    slope, straight = line_through(points)
    if slope <= 0 or straight < _STEADY:
        return []
    per_hour = text(slope * 3600, "bytes")
    return [Finding("growth", "hint", f"Its memory grew steadily to the end, by {per_hour} an hour: a leak would.")]


def line_through(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Slope of the straight line through the points, and how straight they lie (R², 1 is on it)."""
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
    held = record["measurements"].get("cgroup_throttled_seconds", {}).get("total", 0)
    wall = record.get("wall_seconds") or 0
    if not wall or held < _THROTTLED * wall:
        return []
    return [Finding("throttled", "hint", f"Its CPU limit held it back for {text(held, 'seconds')}.")]


def _left(record: Record) -> list[Finding]:
    count = record["provenance"].get("left_running", 0)
    if not count or record["outcome"]["status"] == "detached":
        return []
    who = "1 process" if count == 1 else f"{count} processes"
    return [Finding("left", "problem", f"It left {who} running, not measured to the end.")]


def _shepherd_killed(record: Record) -> list[Finding]:
    words = without_shepherd(record)
    return [Finding("shepherd", "problem", f"{words[0].upper()}{words[1:]}.")] if words else []


def _incomplete(record: Record) -> list[Finding]:
    failed = [
        f"{name}: {entry['failed']}"
        for name, entry in record["provenance"].get("collectors", {}).items()
        if "failed" in entry
    ]
    found = [Finding("incomplete", "hint", f"A source failed while it was read: {told}.") for told in failed]
    if record["outcome"]["status"] == "lost" and not record["provenance"].get("shepherd_killed"):
        told = "Its meter was ended before it: the figures are those of the windows that were written."
        found.append(Finding("incomplete", "problem", told))
    return found
