"""Builds run records: the part that is known when a run begins, the whole when it is over, and its JSON text.

A record is complete once `complete` returned it. It does not change after that: what `run --report` writes and what the
journal holds is the same.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence

from jobmeter import __version__
from jobmeter.byte_text import json_text, to_text
from jobmeter.kernel.hostfs import read_memory_total
from jobmeter.kernel.machine import Machine, cpu_count
from jobmeter.light_typing import TYPE_CHECKING, Any
from jobmeter.model import Outcome, Requirement
from jobmeter.times import utc

if TYPE_CHECKING:
    from jobmeter.record.types import (
        DeviceEntry,
        Host,
        Labels,
        MetricRecord,
        PeakEntry,
        Provenance,
        Record,
        RunIdentity,
        ThreadEntry,
        WorkflowPart,
    )

SCHEMA = "jobmeter.run/1"
_NONE: Mapping[str, MetricRecord] = {}
_LETTERS = b"abcdefghijkmnpqrstuvwxyz23456789" * 8
"""One for each of the 256 values of a byte."""


def new_run_id() -> str:
    """A random id of twelve letters and digits: no two runs anywhere share one, and its first few usually suffice."""
    return run_id(os.urandom(12))


def run_id(data: bytes) -> str:
    """The run id made from these bytes, one letter or digit for each."""
    return data.translate(_LETTERS).decode()


def identity(
    run_id: str,
    *,
    name: str,
    command: list[str],
    requirement: Requirement,
    labels: Labels,
    directory: str | None = None,
    host: Host | None = None,
    user: str | None = None,
    started: float | None = None,
    workflow: WorkflowPart | None = None,
    enforced: Sequence[str] = (),
) -> RunIdentity:
    """The part of the record that is known when the run begins; None means not known.

    `enforced` are the limits that the kernel enforces.
    """
    begun: Any = {"id": run_id, "name": to_text(name), "command": list(map(to_text, command))}
    if directory is not None:
        begun["cwd"] = to_text(directory)
    begun["labels"] = {to_text(key): to_text(value) for key, value in labels.items()}
    if host is not None:
        begun["host"] = host if host.get("name", "").isascii() else {**host, "name": to_text(host["name"])}
    if user is not None:
        begun["user"] = to_text(user)
    if started is not None:
        begun["started"] = utc(started)
    begun["requirement"] = requirement.requested()
    if enforced:
        begun["enforced"] = list(enforced)
    if workflow:
        begun["workflow"] = workflow
    identity: RunIdentity = begun
    return identity


def complete(
    begun: RunIdentity,
    outcome: Outcome,
    *,
    usage: Mapping[str, Any],
    measurements: Mapping[str, Any],
    processes: Sequence[Any],
    threads: Sequence[ThreadEntry] = (),
    peaks: Sequence[PeakEntry] = (),
    devices: Sequence[DeviceEntry] = (),
    provenance: Provenance,
    wall_seconds: float | None = None,
    ended: float | None = None,
    metrics: Mapping[str, MetricRecord] = _NONE,
) -> Record:
    """The whole record; `wall_seconds` and `ended` are None where they are not known."""
    whole: Any = {"schema": SCHEMA, **begun}
    if ended is not None:
        whole["ended"] = utc(ended)
    if wall_seconds is not None:
        whole["wall_seconds"] = round(wall_seconds, 3)
    whole["outcome"] = {"status": outcome.status.value, "exit_code": outcome.exit_code, "signal": outcome.signal}
    if metrics:
        whole["metrics"] = dict(metrics)
    whole["usage"] = dict(usage)
    whole["measurements"] = dict(measurements)
    whole["processes"] = list(processes)
    if threads:
        whole["threads"] = with_rest(threads, usage)
    if peaks:
        whole["peaks"] = list(peaks)
    if devices:
        whole["devices"] = list(devices)
    whole["provenance"] = {"version": __version__, **provenance}
    record: Record = whole
    return record


def with_rest(threads: Sequence[ThreadEntry], usage: Mapping[str, Any]) -> list[ThreadEntry]:
    """The threads, and as the last entry the CPU time of all others: those that began and ended between two readings.

    So the sum of the entries is the CPU time of the job, which is counted independently of its threads.
    """
    listed = [entry for entry in threads if "tid" in entry]
    none: ThreadEntry = {"threads": 0}
    others = next((entry for entry in threads if "tid" not in entry), none)
    total = usage.get("cpu_seconds", {}).get("value")
    if total is None:
        return list(threads)
    rest = round(total - sum(entry["cpu_seconds"] for entry in listed), 6)
    if rest <= 0 and not others["threads"]:
        return listed
    return [*listed, {**others, "name": "others", "cpu_seconds": max(rest, 0.0)}]


def as_json(record: Record) -> str:
    """The record as text, without a newline at its end: the same wherever it is printed or written."""
    return json_text(record, indent=2)


@functools.cache
def this_host(machine: Machine) -> Host:
    """The machine that jobmeter runs on; the same for all runs of this process."""
    system = os.uname()
    host: Host = {"name": system.nodename, "cpus": cpu_count(), "kernel": f"{system.sysname} {system.release}"}
    try:
        host["memory_bytes"] = read_memory_total(machine)
    except (OSError, ValueError):
        pass  # no /proc/meminfo: unknown, so absent
    return host


@functools.cache
def this_user() -> str:
    """The user who runs jobmeter."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
