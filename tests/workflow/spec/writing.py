"""Specs for tests: written to a file, loaded, and the one line that a wrong one gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.errors import UsageError
from jobmeter.workflow.plan import Job, Plan, load_plan


def write(directory: Path, text: str | bytes, name: str = "spec.yaml") -> str:
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def plan_of(directory: Path, text: str, name: str = "spec.yaml") -> Plan:
    return load_plan(write(directory, text, name))


def job_of(directory: Path, fields: str) -> Job:
    """The plan's job `a` with these fields, in YAML between braces."""
    return plan_of(directory, f"jobs:\n- {{name: a, command: ./run, {fields}}}\n").jobs[0]


def refusal_of(directory: Path, text: str | bytes, name: str = "spec.yaml") -> str:
    """What is said about a spec that cannot be used, without the directory it is in."""
    path = write(directory, text, name)
    with pytest.raises(UsageError) as refused:
        load_plan(path)
    message = str(refused.value)
    assert "\n" not in message
    assert refused.value.exit_code == 2
    return message.removeprefix(f"{directory}/")
