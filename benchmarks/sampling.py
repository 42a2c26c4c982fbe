"""The CPU time per process of sampling a process tree once: with jobmeter, psutil and `ps`.

`python -m benchmarks.sampling WAY PID LOOKS` prints it in seconds. Each way is measured in a process of its own.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

PS = ["ps", "-w", "-e", "-o", "pid,ppid,pcpu,pmem,rss,vsz,etime,stat,cmd"]


def with_jobmeter(pid: int) -> Callable[[], None]:
    """The default selection of the collector that reads /proc."""
    from jobmeter.collectors.contract import Moment, Target
    from jobmeter.collectors.proc import ProcCollector

    collector = ProcCollector()
    source = collector.open(Target(root=pid, main=pid, root_is_job=True), collector.default)
    return lambda: void(source.read(Moment(time.monotonic())))


def with_psutil(pid: int) -> Callable[[], None]:
    """As most tools do: find the children, and read memory and CPU, from scratch each time."""
    import psutil

    def look() -> None:
        parent = psutil.Process(pid)
        for process in [parent, *parent.children(recursive=True)]:
            process.memory_info()
            process.cpu_times()

    return look


def with_ps(pid: int) -> Callable[[], None]:
    """The call of `ps` that con-duct makes."""
    return lambda: void(subprocess.run(PS, stdout=subprocess.DEVNULL, check=True))


def void(result: object) -> None:
    del result


def cpu_used() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


WAYS = {"jobmeter": with_jobmeter, "psutil": with_psutil, "ps": with_ps}


def main(way: str, pid: int, looks: int) -> None:
    look = WAYS[way](pid)
    look()
    # The best of three: others use this machine too.
    costs = []
    for _ in range(3):
        before = cpu_used()
        for _ in range(looks):
            look()
        costs.append((cpu_used() - before) / looks)
    print(min(costs) / processes_seen(way, pid))


def processes_seen(way: str, pid: int) -> int:
    """How many processes a sample reads: those of the tree; with `ps`, all of the machine."""
    if way == "ps":
        return sum(name.isdigit() for name in os.listdir("/proc"))
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return 1 + len(file.read().split())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
