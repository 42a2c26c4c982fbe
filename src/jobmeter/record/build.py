"""Builds run records: the part that is known when a run begins, the whole when it is over, and its JSON text.

A record is complete once `complete` returned it. It does not change after that: what `run --report` writes and what the
journal holds is the same.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobmeter import __version__
from jobmeter.kernel.hostfs import read_memory_total
from jobmeter.kernel.machine import Machine, cpu_count
from jobmeter.model import Outcome, Requirement
from jobmeter.times import utc

if TYPE_CHECKING:
    from jobmeter.record.types import Host, Labels, Provenance, Record, RunIdentity, WorkflowPart

SCHEMA = "jobmeter.run/1"


def new_run_id() -> str:
    """Twelve letters and digits: no two runs anywhere share one, and the first few identify it."""
    return run_id(os.urandom(12))


def run_id(data: bytes) -> str:
    """The run id that these bytes make, a letter or digit each."""
    return "".join("abcdefghijkmnpqrstuvwxyz23456789"[byte % 32] for byte in data)


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
    """The part of the record that is known when the run begins; None is not known.

    `enforced` are the limits that the kernel enforces.
    """
    begun: Any = {"id": run_id, "name": name, "command": command}
    if directory is not None:
        begun["cwd"] = directory
    begun["labels"] = labels
    if host is not None:
        begun["host"] = host
    if user is not None:
        begun["user"] = user
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
    provenance: Provenance,
    wall_seconds: float | None = None,
    ended: float | None = None,
) -> Record:
    """The whole record; `wall_seconds` and `ended` are None where they are not known."""
    whole: Any = {"schema": SCHEMA, **begun}
    if ended is not None:
        whole["ended"] = utc(ended)
    if wall_seconds is not None:
        whole["wall_seconds"] = round(wall_seconds, 3)
    whole["outcome"] = {"status": outcome.status.value, "exit_code": outcome.exit_code, "signal": outcome.signal}
    whole["usage"] = dict(usage)
    whole["measurements"] = dict(measurements)
    whole["processes"] = list(processes)
    whole["provenance"] = {"version": __version__, **provenance}
    record: Record = whole
    return record


def as_json(record: Record) -> str:
    """The record as text, without a newline at its end: the same wherever it is printed or written."""
    # Surrogates stand for bytes of file names that are no UTF-8; JSON escapes keep them.
    return json.dumps(record, indent=2)


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
