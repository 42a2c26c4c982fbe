"""`workflow run --auto-size`: requests that are learned from one run of the workflow to the next."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.parts import need_root
from tests.workflow.live import Place

MIB = 2**20
JOBS = 60
BYTES_PER_BYTE = 2000
SPEC = """
name: follows its input
resource_monitor: {{sample_interval_seconds: 0.1}}
files:
{files}
jobs:
{jobs}
"""
LOAD = f"import sys, time; x = b'x' * ({BYTES_PER_BYTE} * len(open(sys.argv[1]).read())); time.sleep(0.2)"


def spec(place: Place) -> str:
    """Jobs of one step, each with an input of its own, of 1 to 60 KB; their need is 2,000 times that."""
    for number in range(1, JOBS + 1):
        (place.folder / f"input{number}").write_text("x" * (1000 * number), encoding="utf-8")
    files = f'  - {{name: "data{{i}}", path: "input{{i}}", parameters: {{i: "1:{JOBS}"}}}}'
    command = f'    command: [{sys.executable}, -c, "{LOAD}", "${{files.input.data{{i}}}}"]'
    jobs = "\n".join(
        [
            '  - name: "load{i}"',
            command,
            f'    parameters: {{i: "1:{JOBS}"}}',
            "    resource_requirements: {memory: 1g}",
        ]
    )
    return SPEC.format(files=files, jobs=jobs)


def attempts(place: Place, run: int) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = json.loads(place.call("results", "--json", "--run-id", str(run)).stdout)["results"]
    return results


def wasted(tries: list[dict[str, Any]]) -> float:
    """Byte-seconds that were requested in vain: all of a failed attempt, and what lies above the peak of the others."""
    total = 0.0
    for each in tries:
        used = each["memory_peak_bytes"] if each["status"] == "completed" else 0.0
        total += max(each["requirement"]["memory_bytes"] - used, 0.0)
    return total


def test_the_third_run_wastes_less_than_a_tenth_of_the_first_and_nothing_fails_for_good(place: Place) -> None:
    need_root("hard limits of memory")
    text = spec(place)
    runs: list[list[dict[str, Any]]] = []
    for _ in range(3):
        done = place.run(text, "--auto-size", "--enforce", "--memory", "8g")
        assert 0 == done.returncode, done.stderr
        assert {"completed"} == set(place.statuses().values())
        runs.append(attempts(place, len(runs) + 1))
    assert JOBS == len(runs[0])
    assert wasted(runs[2]) < wasted(runs[0]) / 10


def steps(needs: dict[str, int]) -> str:
    """A workflow of steps that each request 1 GiB, and hold so many bytes for a while."""
    lines = ["name: steps", "resource_monitor: {sample_interval_seconds: 0.1}", "jobs:"]
    for name, need in needs.items():
        lines += [
            f"  - name: {name}",
            f"    command: [{sys.executable}, -c, \"x = b'x' * {need}; import time; time.sleep(0.2)\"]",
            "    resource_requirements: {memory: 1g}",
        ]
    return "\n".join(lines)


def requests(place: Place, run: int) -> dict[str, list[tuple[str, int]]]:
    """Of each job, how its attempts ended and what they requested."""
    by_name: dict[str, list[tuple[str, int]]] = {}
    for each in attempts(place, run):
        by_name.setdefault(each["name"], []).append((each["status"], each["requirement"]["memory_bytes"]))
    return by_name


def test_a_new_step_requests_a_share_of_its_memory_and_all_of_it_where_that_was_not_enough(place: Place) -> None:
    need_root("hard limits of memory")
    usual = {f"step{number}": 30 * MIB for number in range(8)}
    assert 0 == place.run(steps(usual), "--auto-size", "--enforce", "--memory", "8g").returncode
    assert {(("completed", 2**30),)} == {tuple(each) for each in requests(place, 1).values()}
    done = place.run(
        steps({**usual, "small": 20 * MIB, "large": 700 * MIB}), "--auto-size", "--enforce", "--memory", "8g"
    )
    assert 0 == done.returncode, done.stderr
    now = requests(place, 2)
    ((status, share),) = now["small"]
    assert ("completed", True) == (status, share < 2**29)
    assert [("oom", share), ("completed", 2**30)] == now["large"]


def test_a_new_step_keeps_its_request_where_few_others_have_run(place: Place) -> None:
    usual = {f"step{number}": 30 * MIB for number in range(3)}
    assert 0 == place.run(steps(usual), "--auto-size").returncode
    assert 0 == place.run(steps({**usual, "new": 20 * MIB}), "--auto-size").returncode
    assert [("completed", 2**30)] == requests(place, 2)["new"]
