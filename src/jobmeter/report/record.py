"""The run record: one JSON object that holds all that is known of a run."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Sequence
from typing import Any

from jobmeter import __version__
from jobmeter.analyse.headline import CpuSpan
from jobmeter.analyse.headline_table import usage
from jobmeter.collectors.contract import ProcessUse
from jobmeter.kernel.hostfs import read_memory_total
from jobmeter.kernel.machine import Machine, cpu_count
from jobmeter.model import Measurement, Outcome, Record, Requirement

SCHEMA = "jobmeter.run/1"


def new_run_id() -> str:
    """Twelve letters and digits: no two runs anywhere share one, and a few of them tell it from others."""
    return "".join("abcdefghijkmnpqrstuvwxyz23456789"[byte % 32] for byte in os.urandom(12))


def utc(timestamp: float) -> str:
    """ISO-8601 in UTC, to the millisecond."""
    seconds, milliseconds = divmod(round(timestamp * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03d}Z"


def identity(
    run_id: str,
    *,
    command: list[str],
    name: str,
    directory: str,
    labels: dict[str, str],
    requirement: Requirement,
    started: float,
    machine: Machine,
    workflow: Record | None = None,
    enforced: Sequence[str] = (),
) -> Record:
    """The part of the record that is known when the run begins; `enforced` are the limits that the kernel keeps."""
    return {
        "id": run_id,
        "name": name,
        "command": command,
        "cwd": directory,
        "labels": labels,
        **surroundings(machine),
        "started": utc(started),
        "requirement": requirement.asked(),
        **({"enforced": list(enforced)} if enforced else {}),
        **({"workflow": workflow} if workflow else {}),
    }


@functools.cache
def surroundings(machine: Machine) -> Record:
    """Which machine and which user; the same for all runs of this process."""
    system = os.uname()
    host: dict[str, Any] = {
        "name": system.nodename,
        "cpus": cpu_count(),
        "kernel": f"{system.sysname} {system.release}",
    }
    try:
        host["memory_bytes"] = read_memory_total(machine)
    except (OSError, ValueError):
        pass  # no /proc/meminfo: not known, so not there
    return {"host": host, "user": _user_name()}


def complete(
    begun: Record,
    result: Outcome,
    *,
    summary: dict[str, dict[str, Any]],
    processes: list[ProcessUse],
    measurements: dict[str, Measurement],
    wall_seconds: float,
    ended: float,
    left_running: int,
    complete_figures: bool,
    provenance: dict[str, Any],
    cpu_span: CpuSpan | None = None,
) -> Record:
    """The whole record, when the run is over."""
    described = {key: measurement.described() for key, measurement in measurements.items()}
    return {
        "schema": SCHEMA,
        **begun,
        "ended": utc(ended),
        "wall_seconds": round(wall_seconds, 3),
        "outcome": {"status": result.status, "exit_code": result.exit_code, "signal": result.signal},
        "usage": usage(summary, described, wall_seconds, complete=complete_figures, cpu_span=cpu_span),
        "measurements": summary,
        "processes": [process_entry(use) for use in processes],
        "provenance": {
            "version": __version__,
            "selected": list(measurements),
            **provenance,
            **({"left_running": left_running} if left_running else {}),
        },
    }


def process_entry(use: ProcessUse) -> dict[str, Any]:
    entry = {
        "pid": use.identity.pid,
        "cmd": use.cmd,
        "cpu_seconds": use.cpu_seconds,
        "rss_peak_bytes": use.rss_peak_bytes,
        "seconds": use.seconds,
    }
    if use.together > 1:
        del entry["pid"]
        entry["processes"] = use.together
    return entry


def _user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
