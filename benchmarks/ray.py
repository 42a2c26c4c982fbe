"""`python -m benchmarks.ray`: jobs of the engine `ray` compared with plain Ray tasks of the same command.

It starts a real cluster of two nodes with one CPU each. Both take turns, so that other load on the machine affects both
alike, and both are timed as whole programs, from start to end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

from tests.ray_cluster import RayCluster

from benchmarks.table import print_table, seconds
from benchmarks.workflow import sweep_spec

JOBS = 1_000
ROUNDS = 3
LIMIT = 0.020

_PLAIN = """
import subprocess, sys, ray
ray.init(sys.argv[1], log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=1, max_retries=0)
def job(number):
    return subprocess.run(["true"]).returncode
assert not any(ray.get([job.remote(number) for number in range(int(sys.argv[2]))]))
"""


def main() -> int:
    cluster = RayCluster()
    plain, jobs = [], []
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        environment = cluster.environment()
        with tempfile.TemporaryDirectory(prefix="jobmeter-ray-") as place:
            spec = sweep_spec(
                place, "thousand", [f'{{name: "t_{{i}}", command: "true", parameters: {{i: "1:{JOBS}"}}}}']
            )
            workflow = [sys.executable, "-m", "jobmeter", "workflow", "run", spec, "--store", f"{place}/store"]
            workflow += ["--quiet", "--engine", "ray", "--address", cluster.address]
            for _ in range(ROUNDS):
                plain.append(_time([sys.executable, "-c", _PLAIN, cluster.address, str(JOBS)], environment, place))
                jobs.append(_time(workflow, environment, place))
    finally:
        cluster.close()
    theirs, ours = min(plain) / JOBS, min(jobs) / JOBS
    print_table(
        f"{JOBS:,} jobs of `true` on two nodes of one CPU: the best of {ROUNDS}",
        ["how", "time a job", "more", "times", "limit"],
        [
            ["plain Ray tasks", seconds(theirs), "", "", ""],
            [
                "workflow run --engine ray",
                seconds(ours),
                seconds(ours - theirs),
                f"{ours / theirs:.1f}",
                seconds(LIMIT),
            ],
        ],
    )
    return int(ours - theirs > LIMIT)


def _time(command: list[str], environment: dict[str, str], place: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, env=environment, cwd=place, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
