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
    found: list[dict[str, Any]] = json.loads(place.call("results", "--json", "--run-id", str(run)).stdout)["results"]
    return found


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
