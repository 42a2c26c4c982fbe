"""The few lines that `jobmeter run` ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobmeter.analyse.outcome import in_words, outcome_of, without_shepherd
from jobmeter.model import Quality, Status
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import Figure, Record


def summary_lines(record: Record, journal: str | None) -> list[str]:
    """What a person wants to know first, one subject a line."""
    ending = in_words(outcome_of(record))
    lines = [f"jobmeter: {record['name']} {ending} after {text(record['wall_seconds'], 'seconds')}"]
    rows = [
        ("CPU", _cpu(record)),
        ("memory", _memory(record)),
        ("disk", _disk(record)),
        ("processes", _processes(record)),
        ("left", _left(record)),
        ("note", without_shepherd(record)),
        ("record", f"{record['id']}  {journal}" if journal else ""),
    ]
    lines += [f"  {name:<10} {content}" for name, content in rows if content]
    return lines


Part = tuple[str, "Figure"]
"""Words for one figure, and the figure."""


def _tagged(parts: list[Part]) -> str:
    """Figures in words, each with its quality and source; those that share them in one tag: `[exact, cgroup]`."""
    text = ""
    for number, (words, figure) in enumerate(parts):
        following = parts[number + 1][1] if number + 1 < len(parts) else None
        text += (", " if text else "") + words
        if following is None or _tag(figure) != _tag(following):
            text += f" [{_tag(figure)}]"
    return text


def _tag(figure: Figure) -> str:
    return f"{figure['quality']}, {figure['from'].partition('_')[0]}"


def _processes(record: Record) -> str:
    figure = record["usage"].get("processes_peak")
    if figure is None:
        return ""
    return _quantity(figure, "count") + (" at most" if figure["quality"] != Quality.AT_LEAST.value else "")


def _quantity(figure: Figure, unit: str) -> str:
    at_least = "at least " if figure["quality"] == Quality.AT_LEAST.value else ""
    return at_least + text(figure["value"], unit)


def _at_most(figure: Figure, unit: str) -> str:
    if figure["quality"] == Quality.AT_LEAST.value:
        return f"{_quantity(figure, unit)} at the peak"
    return f"{_quantity(figure, unit)} at most"


def _share(used: float, requested: float | None, words: str) -> str:
    return "" if not requested else f", {100 * used / requested:.0f} % of the {words} requested"


def _cpu(record: Record) -> str:
    usage, cpus = record["usage"], record["requirement"].get("cpus")
    parts: list[Part] = []
    if "cpu_seconds" in usage:
        parts.append((_quantity(usage["cpu_seconds"], "seconds"), usage["cpu_seconds"]))
    if "cpu_mean_percent" in usage:
        mean = usage["cpu_mean_percent"]
        words = f"{text(mean['value'], 'percent')} on average"
        words += _share(mean["value"], cpus and 100 * cpus, f"{text(cpus, 'count')} CPUs" if cpus else "")
        parts.append((words, mean))
    # A job too short for a rate has its mean alone.
    mean_value = usage["cpu_mean_percent"]["value"] if "cpu_mean_percent" in usage else None
    if "cpu_peak_percent" in usage and usage["cpu_peak_percent"]["value"] != mean_value:
        parts.append((_at_most(usage["cpu_peak_percent"], "percent"), usage["cpu_peak_percent"]))
    return _tagged(parts)


def _memory(record: Record) -> str:
    usage, limit = record["usage"], record["requirement"].get("memory_bytes")
    parts: list[Part] = []
    if "memory_peak_bytes" in usage:
        peak = usage["memory_peak_bytes"]
        words = _at_most(peak, "bytes") + _share(peak["value"], limit, text(limit, "bytes") if limit else "")
        parts.append((words, peak))
    if "memory_mean_bytes" in usage:
        mean = usage["memory_mean_bytes"]
        parts.append((f"{text(mean['value'], 'bytes')} on average", mean))
    return _tagged(parts)


def _disk(record: Record) -> str:
    usage = record["usage"]
    figures = ((usage.get("read_bytes"), "read"), (usage.get("write_bytes"), "written"))
    return ", ".join(f"{text(figure['value'], 'bytes')} {verb}" for figure, verb in figures if figure is not None)


def _left(record: Record) -> str:
    count = record["provenance"].get("left_running", 0)
    if not count or record["outcome"]["status"] == Status.DETACHED:
        return ""
    who = "1 process still runs and was" if count == 1 else f"{count} processes still run and were"
    return f"{who} left alone; --orphans wait measures to the end"
