"""The processes that held the memory at its peak, in words: for `show` and plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from jobmeter.terminal import printable
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import PeakEntry, PeakProcess, Record

_KINDS = {"anonymous_bytes": "anonymous", "file_bytes": "of files", "shared_bytes": "shared"}
_MOSTLY = 0.8
"""Share of the memory of a process from which on its kind of memory is named."""
_NAMED = 4
"""Groups of processes with the same command that are named, the largest first."""
_SMALL = 0.02
"""Share of the peak below which a group is not named."""
_LONGEST = 50


def job_peak(record: Record) -> PeakEntry | None:
    """The last and highest peak of memory; None if no peak was recorded with its processes."""
    return next((peak for peak in reversed(record.get("peaks", [])) if "kind" not in peak), None)


def gpu_peaks(record: Record) -> list[PeakEntry]:
    """The peaks of GPU memory, one for each kind of GPU."""
    return [peak for peak in record.get("peaks", []) if peak.get("kind") == "gpu"]


def peak_text(peak: PeakEntry) -> str:
    """`at 12.3 s: python train.py 3.1 GiB anonymous, 4 × python worker.py 205 MiB each`."""
    alike: dict[str, list[PeakProcess]] = {}
    for process in peak["processes"]:
        alike.setdefault(process["cmd"], []).append(process)
    groups = sorted(alike.values(), key=lambda group: -sum(process["bytes"] for process in group))
    named = [group for group in groups if sum(p["bytes"] for p in group) >= _SMALL * peak["bytes"]][:_NAMED]
    others = [process for group in groups if group not in named for process in group]
    words = [_group_text(group) for group in named]
    if others:
        count = sum(process.get("processes", 1) for process in others)
        words.append(f"{count} more {text(sum(process['bytes'] for process in others), 'bytes')}")
    return f"at {text(peak['seconds'], 'seconds')}: {', '.join(words)}"


def _group_text(group: list[PeakProcess]) -> str:
    first = group[0]
    command = _short(printable(" ".join(first["cmd"].split())))
    if len(group) == 1:
        return f"{command} {text(first['bytes'], 'bytes')}{_kind(first)}"
    mean = sum(process["bytes"] for process in group) / len(group)
    return f"{len(group)} × {command} {text(mean, 'bytes')} each{_kind(first)}"


def _kind(process: PeakProcess) -> str:
    amounts = {words: cast("dict[str, Any]", process).get(name, 0) for name, words in _KINDS.items()}
    words, most = max(amounts.items(), key=lambda item: item[1])
    return f" {words}" if most and most >= _MOSTLY * sum(amounts.values()) else ""


def _short(command: str) -> str:
    """The program without its directory, and its arguments; cut in the middle, where commands differ least."""
    program, _, arguments = command.partition(" ")
    short = f"{program.rpartition('/')[2]} {arguments}".strip()
    return short if len(short) <= _LONGEST else f"{short[: _LONGEST // 2]}…{short[-_LONGEST // 2 + 1 :]}"
