"""The summary of a workflow, `check --fix` and `size` give one advice; messages name what was requested."""

from __future__ import annotations

import json
import re
import sys

import pytest

from jobmeter.cli.main import main
from jobmeter.units import parse_bytes, parse_seconds, text
from tests.workflow.live import Place

HOG = f"{sys.executable} -c 'x = bytearray(60 << 20)'"
SPEC = """\
name: flow
enforce: true
jobs:
  - {name: slow, command: sleep 1.5, resource_requirements: {runtime: 1s}, retry: {times: 1, grow: {runtime: 4}}}
"""
TOO_SMALL = f"""\
name: small
jobs:
  - {{name: hog, command: "{HOG}", resource_requirements: {{memory: 20m}}}}
"""


def advised(place: Place, step: str, amount: str, capfd: pytest.CaptureFixture[str]) -> float:
    """What `size` advises."""
    capfd.readouterr()
    assert 0 == main(["size", "--store", str(place.store), step, "--format", "json"])
    return float(json.loads(capfd.readouterr().out)["jobs"][0][amount]["ask"])


def test_memory_that_is_advised_is_the_same_everywhere(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    done = place.run(TOO_SMALL)
    assert 0 == done.returncode, done.stderr
    assert re.search(r"too little hog: Memory (at least )?\d+\.?\d* MiB of the 20 MiB requested", done.stderr)
    size = advised(place, "hog", "memory_bytes", capfd)
    assert f"  advice     hog: request memory {text(size, 'bytes')}\n" in done.stderr
    spec = place.folder / "spec.yaml"
    assert 1 == main(["check", "--store", str(place.store), "--fix", str(spec)])
    (written,) = re.findall(r"memory: (\w+)", spec.read_text())
    assert size == parse_bytes(written)


def test_of_a_job_that_a_retry_helped_the_request_is_named_and_not_what_the_retry_had(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    done = place.run(SPEC)
    assert 0 == done.returncode, done.stderr
    assert "trying again with 4 s" in done.stderr
    assert re.search(r"too little slow: Runtime 1\.\d+ s of the 1 s requested \(2 attempts\)", done.stderr), done.stderr
    size = advised(place, "slow", "runtime_seconds", capfd)
    assert f"  advice     slow: request runtime {text(size, 'seconds')}\n" in done.stderr
    spec = place.folder / "spec.yaml"
    assert 1 == main(["check", "--store", str(place.store), "--fix", str(spec)])
    (written,) = re.findall(r"runtime: (\w+)}", spec.read_text())[:1]
    assert size == parse_seconds(written)
