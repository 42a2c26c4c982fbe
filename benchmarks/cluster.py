"""`python -m benchmarks.cluster [SECONDS]`: what watching a cluster costs each of its nodes, at the default interval.

A real Ray cluster of several nodes, each with workers to read. Periods with and without the monitor take turns, so that
other load on the machine affects both alike. The cost of an idle Ray actor is shown for comparison.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from tests.cluster.watching import driver
from tests.ray_cluster import RayCluster

from benchmarks.table import print_table
from jobmeter.kernel.machine import THIS_MACHINE, TICKS_PER_SECOND
from jobmeter.kernel.procfs import read_stat

NODES = 2
INTERVAL = "5s"
LIMIT = 1.0
"""Percent of a core, for each node."""
ROUNDS = 3
TASKS = """
@ray.remote(num_cpus=0.5)
def work():
    while True: time.sleep(0.01)
@ray.remote(num_cpus=0)
class Idle:
    def ask(self): return 1
tasks = [work.remote() for _ in range(8)]
idle = [Idle.options(scheduling_strategy="SPREAD").remote() for _ in range(2)]
ray.get([each.ask.remote() for each in idle])
print("running", flush=True)
sys.stdin.read()
"""


def main(arguments: Sequence[str]) -> int:
    seconds = float(arguments[0]) if arguments else 60.0
    cluster = RayCluster()
    try:
        raylets = [cluster.raylet(cluster.add_node(num_cpus=2)) for _ in range(NODES)]
        with driver(cluster, TASKS):
            return _compare(cluster, raylets, seconds)
    finally:
        cluster.close()


def _compare(cluster: RayCluster, raylets: Sequence[int], seconds: float) -> int:
    samplers, monitors, idle, without, with_it = [], [], [], [], []
    for _ in range(ROUNDS):
        without.append(_shares({"raylets": raylets}, seconds / 2)["raylets"] / NODES)
        with tempfile.TemporaryDirectory(prefix="jobmeter-cluster-") as store:
            monitor = _start(cluster, store)
            try:
                of_actors = {name: _workers(raylets, name) for name in ("JobmeterSampler", "Idle")}
                shares = _shares({**of_actors, "monitor": [monitor.pid], "raylets": raylets}, seconds)
            finally:
                monitor.send_signal(signal.SIGINT)
                monitor.wait()
        samplers.append(shares["JobmeterSampler"] / NODES)
        monitors.append(shares["monitor"] / (NODES + 1))  # the head is a node, too
        idle.append(shares["Idle"] / 2)
        with_it.append(shares["raylets"] / NODES)
    more = max(statistics.median(with_it) - statistics.median(without), 0.0)
    total = statistics.median(samplers) + statistics.median(monitors) + more
    print_table(
        f"Watching {NODES + 1} nodes at {INTERVAL}, {ROUNDS} times {seconds:g} s: percent of a core, a node",
        ["part", "percent"],
        [
            ["sampler", _percent(samplers)],
            ["of which any idle actor of Ray", _percent(idle)],
            ["monitor", _percent(monitors)],
            ["raylet, more than without", f"{more:.2f}"],
            ["together", f"{total:.2f} (limit {LIMIT:g})"],
        ],
    )
    return 0 if total <= LIMIT else 1


def _percent(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _start(cluster: RayCluster, store: str) -> subprocess.Popen[bytes]:
    """Start the monitor, and return it once it has taken some samples: the cost of its start does not count."""
    words = ["--address", cluster.address, "--interval", INTERVAL, "--store", store, "--quiet"]
    monitor = subprocess.Popen(
        [sys.executable, "-m", "jobmeter", "cluster", *words],
        env=cluster.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not os.path.isdir(f"{store}/cluster"):
        time.sleep(0.1)
    time.sleep(12)
    return monitor


def _workers(raylets: Sequence[int], name: str) -> list[int]:
    pids = []
    for raylet in raylets:
        with open(f"/proc/{raylet}/task/{raylet}/children", encoding="ascii") as file:
            children = file.read().split()
        for child in children:
            with open(f"/proc/{child}/cmdline", encoding="utf-8", errors="replace") as file:
                if f"ray::{name}" in file.read():
                    pids.append(int(child))
    return pids


def _shares(groups: dict[str, Sequence[int]], seconds: float) -> dict[str, float]:
    """The CPU that the processes of each group use together, in percent of a core."""
    before, began = {name: sum(map(_cpu, pids)) for name, pids in groups.items()}, time.monotonic()
    time.sleep(seconds)
    lasted = time.monotonic() - began
    return {name: 100 * (sum(map(_cpu, pids)) - before[name]) / lasted for name, pids in groups.items()}


def _cpu(pid: int) -> float:
    stat = read_stat(THIS_MACHINE, pid)
    return (stat.user + stat.system) / TICKS_PER_SECOND


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
