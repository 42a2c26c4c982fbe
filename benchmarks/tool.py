"""The contract of a tool under comparison: how it is run, and how its report is read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple, Protocol

ROOT = Path(__file__).resolve().parent.parent
LOADS = str(ROOT / "benchmarks" / "loads.py")
VENV = ROOT / ".venv-peers"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
"""A Python that other users can run too."""


class Reading(NamedTuple):
    """What a tool reported; None for what it does not report."""

    cpu_seconds: float | None = None
    memory_bytes: float | None = None
    written_bytes: float | None = None
    exit_code: int | None = None
    cpu_mark: str = ""  # "≥": the tool itself says "at least"; "~": sampled
    memory_mark: str = ""
    written_mark: str = ""


class Tool(Protocol):
    """The adapter of a tool. `place` is an empty directory for one run, for all files that the tool writes."""

    name: str

    def command(self, job: list[str], place: Path) -> list[str]:
        """The command line that measures `job`, at an interval of 1 s where there is one."""
        ...

    def read(self, place: Path) -> Reading:
        """What the tool reported. Raises OSError, ValueError or KeyError if there is no complete report."""
        ...


def load_command(name: str, place: Path) -> list[str]:
    return [PYTHON, LOADS, name, str(place)]


def environment() -> dict[str, str]:
    """The environment of every tool: the same for all, with the venv of the tools first in PATH."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("JOBMETER_", "PYTHON"))}
    return {**inherited, "PATH": f"{VENV}/bin:{os.environ.get('PATH', os.defpath)}", "PYTHONPATH": str(ROOT / "src")}
