"""Folders that stand for /proc and /sys, where the hardware is missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jobmeter.kernel.machine import Machine


def write_files(root: Path, files: Mapping[str, object]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")


def machine(root: Path, sys: Mapping[str, object] = {}, *, proc: str = "/proc") -> Machine:
    """This machine's /proc, and a /sys with these files."""
    write_files(root / "sys", sys)
    return Machine(proc=proc, sys=str(root / "sys"))


def process_line(pid: int, parent: int, ticks: int = 0) -> str:
    """A line of /proc/PID/stat of a process that sleeps, and has used so much CPU time."""
    before, after = ["0"] * 9, ["0"] * 5
    return f"{pid} (job) S {parent} " + " ".join([*before, str(ticks), *after]) + " 1 0 77 1000 10 " + "0 " * 30
