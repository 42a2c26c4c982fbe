"""Installs the tools that jobmeter is compared with, when they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.adapters import OURS, PEERS
from benchmarks.tool import VENV, Tool

_PYPI = {
    "con-duct": ("con-duct", "con-duct"),
    "psrecord": ("psrecord", "psrecord"),
    "memory-profiler": ("memory-profiler", "mprof"),
    "denet": ("denet", "denet-report"),
    "resource-tracker": ("resource-tracker", None),
    "runexec": ("benchexec", "runexec"),
}
"""Tool → its package, and a program of it that shows whether it is installed, if it has one."""

_DEBIAN = {"GNU time": ("time", "/usr/bin/time"), "perf stat": ("linux-perf", "perf")}

Missing = dict[str, str]
"""Tool → why it cannot be used here."""


def prepare(wanted: list[str] | None = None) -> tuple[list[Tool], Missing]:
    """The tools that can be used here, and the others with the reason."""
    tools, missing = [], Missing()
    for tool in (*OURS, *PEERS):
        if wanted and tool.name not in wanted:
            continue
        why = _why_not(tool.name)
        if why is None:
            tools.append(tool)
        else:
            missing[tool.name] = why
    return tools, missing


def _why_not(name: str) -> str | None:
    if name == "jobmeter, as user":
        return None if os.geteuid() == 0 and shutil.which("setpriv") else "needs root and setpriv to become a user"
    if name in _PYPI:
        return _install_from_pypi(*_PYPI[name])
    if name in _DEBIAN:
        return _install_from_debian(*_DEBIAN[name])
    return None


def _install_from_pypi(package: str, program: str | None) -> str | None:
    library = Path(VENV, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
    sign = VENV / "bin" / program if program else library / package.replace("-", "_")
    if sign.exists():
        return None
    if not (VENV / "bin" / "python").exists():
        venv.create(VENV, with_pip=True)
    return _run([str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", package])


def _install_from_debian(package: str, program: str) -> str | None:
    if shutil.which(program):
        return None
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"not installed: apt-get install {package}"
    apt = ["apt-get", "-qq", "-y", "--no-install-recommends", "install", package]
    _run(["apt-get", "-qq", "update"])
    return _run(apt) or (None if shutil.which(program) else f"{package} has no {program}")


def _run(command: list[str]) -> str | None:
    """Run an installer. Returns None, or the last line of its error message if it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
    return f"not installed: {lines[-1]}"
