"""`python -m benchmarks.celery_tasks`: what measuring costs a Celery worker; the engine compared with plain tasks.

It starts real workers and its own Redis. Measured and plain tasks take turns, so that other load on the machine affects
both alike.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.celery_workers import Redis, TaskWorker, Worker

from benchmarks.table import mib, print_table, seconds
from benchmarks.tool import ROOT
from benchmarks.workflow import sweep_spec, workflow

BATCH = 250
ROUNDS = 4
MANY = 10_000
JOBS = 500
CPU_LIMIT = 0.002
ENGINE_LIMIT = 0.010
STARTS = 9


def main(sections: Sequence[str]) -> int:
    redis = Redis()
    try:
        with tempfile.TemporaryDirectory(prefix="jobmeter-celery-") as place:
            for name, section in _SECTIONS.items():
                if not sections or name in sections:
                    section(redis.url, place)
    finally:
        redis.close()
    return 0


def _overhead(broker: str, place: str) -> None:
    measured = TaskWorker(broker, f"{place}/store", "-c", "1")
    plain = TaskWorker(broker, f"{place}/none", "-c", "1", environment={"JOBMETER_CELERY": ""})
    costs: dict[str, list[float]] = {"plain": [], "measured": []}
    try:
        for worker in (plain, measured):
            _run_tasks(worker, 50)
        for _ in range(ROUNDS):
            for name, worker in (("plain", plain), ("measured", measured)):
                before = _cpu_seconds(worker)
                _run_tasks(worker, BATCH)
                costs[name].append((_cpu_seconds(worker) - before) / BATCH)
        without, with_it = (statistics.median(costs[name]) for name in ("plain", "measured"))
        print_table(
            f"{BATCH * ROUNDS:,} tasks of 1 ms: CPU time of the worker a task",
            ["worker", "CPU a task", "more", "limit"],
            [
                ["plain", seconds(without), "", ""],
                ["measured", seconds(with_it), seconds(with_it - without), seconds(CPU_LIMIT)],
            ],
        )
        plain.close()
        _memory(measured, BATCH * ROUNDS + 50)
    finally:
        plain.close()
        measured.close()


def _memory(worker: TaskWorker, done: int) -> None:
    sizes = []
    for until in (2_000, MANY // 2, MANY):
        _run_tasks(worker, max(until - done, 0))
        done = max(done, until)
        sizes.append([f"{done:,}", *(mib(_resident(pid)) for pid in _processes(worker))])
    print_table("Memory of a worker that measures", ["tasks", "worker", "child"], sizes)


def _engine(broker: str, place: str) -> None:
    """Compare the engine with plain tasks. Both run the program `true` for each job, two at a time."""
    worker = Worker(broker, None, "--cpus", "2")
    plain = TaskWorker(broker, f"{place}/none", "-c", "2", environment={"JOBMETER_CELERY": ""})
    spec = sweep_spec(place, "engine", [f'{{name: "t_{{i}}", command: "true", parameters: {{i: "1:{JOBS}"}}}}'])
    options = ["--engine", "celery", "--broker", broker, "--queue", worker.queue]
    through_engine, through_celery = [], []
    try:
        for _ in range(2):
            began = time.perf_counter()
            assert workflow("run", "--quiet", spec, *options, place=place).wait() == 0
            through_engine.append((time.perf_counter() - began) / JOBS)
            began = time.perf_counter()
            for sent in [plain.send("run_true") for _ in range(JOBS)]:
                sent.get(timeout=300)
            through_celery.append((time.perf_counter() - began) / JOBS)
    finally:
        worker.close()
        plain.close()
    ours, theirs = min(through_engine), min(through_celery)
    print_table(
        f"{JOBS} jobs of `true`, two at a time: the better of 2",
        ["how", "time a job", "more", "limit"],
        [
            ["plain Celery tasks", seconds(theirs), "", ""],
            ["jobmeter workflow run --engine celery", seconds(ours), seconds(ours - theirs), seconds(ENGINE_LIMIT)],
        ],
    )


def _start(broker: str, place: str) -> None:
    """Show what the entry point costs every `celery` command when JOBMETER_CELERY is not set."""
    bare = "from importlib import metadata\nmetadata.entry_points = lambda **_: ()\nimport celery.bin.celery"
    print_table(
        "Loading the program `celery`",
        ["entry points", "the best start"],
        [[name, seconds(_best_start(code))] for name, code in (("none", bare), ("all", "import celery.bin.celery"))],
    )


def _best_start(code: str) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JOBMETER_")}
    times = []
    for _ in range(STARTS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env={**environment, "PYTHONPATH": f"{ROOT}/src"}, check=True)
        times.append(time.perf_counter() - began)
    return min(times)


_SECTIONS = {"overhead": _overhead, "engine": _engine, "start": _start}


def _run_tasks(worker: TaskWorker, count: int) -> None:
    for sent in [worker.send("spin", 0.001) for _ in range(count)]:
        sent.get(timeout=300)


def _processes(worker: TaskWorker) -> list[int]:
    """The worker and its children."""
    pid = worker.process.pid
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def _cpu_seconds(worker: TaskWorker) -> float:
    ticks = 0
    for pid in _processes(worker):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
