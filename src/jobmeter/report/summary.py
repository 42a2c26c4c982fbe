"""The few lines that `jobmeter run` ends with."""

from __future__ import annotations

from typing import Any

from jobmeter.analyse.outcome import in_words, without_shepherd
from jobmeter.model import Outcome, Quality, Record
from jobmeter.units import text


def summary_lines(record: Record, journal: str | None) -> list[str]:
    """What a person wants to know first, one subject a line."""
    result = Outcome(**record["outcome"])
    lines = [f"jobmeter: {record['name']} {in_words(result)} after {text(record['wall_seconds'], 'seconds')}"]
    rows = [
        ("CPU", _cpu(record)),
        ("memory", _memory(record)),
        ("disk", _disk(record)),
        ("processes", _figure(record, "processes_peak", "count", " at most")),
        ("left", _left(record)),
        ("note", without_shepherd(record)),
        ("record", f"{record['id']}  {journal}" if journal else ""),
    ]
    lines += [f"  {name:<10} {content}" for name, content in rows if content]
    return lines


def _figure(record: Record, name: str, unit: str, after: str = "") -> str:
    figure = record["usage"].get(name)
    if figure is None:
        return ""
    return _quantity(figure, unit) + (after if figure["quality"] != Quality.AT_LEAST.value else "")


def _quantity(figure: dict[str, Any], unit: str) -> str:
    at_least = "at least " if figure["quality"] == Quality.AT_LEAST.value else ""
    return at_least + text(figure["value"], unit)


def _source(record: Record, name: str) -> str:
    """Where the figure is from and whether it is exact: `[exact, cgroup]`."""
    figure = record["usage"][name]
    return f"  [{figure['quality']}, {figure['from'].partition('_')[0]}]"


def _share(used: float, asked: float | None, unit: str) -> str:
    return "" if not asked else f", {100 * used / asked:.0f} % of the {text(asked, unit)} asked for"


def _cpu(record: Record) -> str:
    usage, requirement = record["usage"], record["requirement"]
    if "cpu_seconds" not in usage:
        return ""
    line = _quantity(usage["cpu_seconds"], "seconds")
    if "cpu_mean_percent" in usage:
        mean, peak = usage["cpu_mean_percent"]["value"], usage["cpu_peak_percent"]["value"]
        line += f", {text(mean, 'percent')} on average, {text(peak, 'percent')} at most"
        cpus = requirement.get("cpus")
        line += f", {mean / cpus:.0f} % of the {text(cpus, 'count')} CPUs asked for" if cpus else ""
    return line + _source(record, "cpu_seconds")


def _memory(record: Record) -> str:
    usage = record["usage"]
    if "memory_peak_bytes" not in usage:
        return ""
    peak = usage["memory_peak_bytes"]
    line = (
        f"{_quantity(peak, 'bytes')} at most" if peak["quality"] != Quality.AT_LEAST.value else _quantity(peak, "bytes")
    )
    if "memory_mean_bytes" in usage:
        line += f", {text(usage['memory_mean_bytes']['value'], 'bytes')} on average"
    return (
        line
        + _share(peak["value"], record["requirement"].get("memory_bytes"), "bytes")
        + _source(record, "memory_peak_bytes")
    )


def _disk(record: Record) -> str:
    usage = record["usage"]
    parts = [
        f"{text(usage[name]['value'], 'bytes')} {verb}"
        for name, verb in (("read_bytes", "read"), ("write_bytes", "written"))
        if name in usage
    ]
    return ", ".join(parts)


def _left(record: Record) -> str:
    count = record["provenance"].get("left_running", 0)
    if not count or record["outcome"]["status"] == "running":
        return ""
    who = "1 process still runs and was" if count == 1 else f"{count} processes still run and were"
    return f"{who} left alone; --orphans wait measures to the end"
