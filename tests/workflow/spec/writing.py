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
    """What is said about a spec with one problem, without the directory it is in."""
    (line,) = refusals_of(directory, text, name)
    return line


def refusals_of(directory: Path, text: str | bytes, name: str = "spec.yaml") -> list[str]:
    """What is said about a spec that cannot be used: a line for each problem, without the directory it is in."""
    path = write(directory, text, name)
    with pytest.raises(UsageError) as refused:
        load_plan(path)
    assert refused.value.exit_code == 2
    assert all("\n" not in line for line in refused.value.lines)
    return [line.removeprefix(f"{directory}/") for line in refused.value.lines]
