"""`python -m benchmarks.synthetic N DIR`: a store of N plausible runs, in journals of many runs each."""

from __future__ import annotations

import math
import os
import random
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.journal.reader import JournalWindow
from jobmeter.journal.writer import JournalFile, JournalWriter, shared_journal
from jobmeter.model import Across, Kind, Measurement, Quality, Status
from jobmeter.record.build import SCHEMA
from jobmeter.times import utc

if TYPE_CHECKING:
    from jobmeter.record.types import Record

RUNS_PER_FILE = 50_000
SPAN = 365 * 86400.0
LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
STATUSES = (Status.COMPLETED, Status.FAILED, Status.OOM, Status.TIMEOUT, Status.KILLED, Status.CANCELLED)
SHARES = (92, 4, 1, 1, 1, 1)
ENDS = {
    Status.COMPLETED: (0, None), Status.FAILED: (1, None), Status.TIMEOUT: (None, 15), Status.CANCELLED: (None, 2),
}  # fmt: skip
STEPS = ("align", "assemble", "build", "call-variants", "clean", "embed", "evaluate", "export", "index", "lint",
         "merge", "prepare", "render", "simulate", "sort", "test", "train", "upload")  # fmt: skip
DATASETS = ("small", "full", "mouse", "nightly")
HOST = {"name": "synthetic", "cpus": 16, "kernel": "Linux 6.8.0", "memory_bytes": 64 << 30}

GAUGES = {
    "cgroup_mem_peak": "bytes", "cgroup_file": "bytes", "cgroup_held": "bytes", "cgroup_cpu_percent": "percent",
    "proc_rss_total": "bytes", "proc_hwm_max": "bytes", "proc_cpu_percent": "percent", "proc_processes": "count",
}  # fmt: skip
COUNTERS = {
    "cgroup_cpu_seconds": "seconds", "cgroup_oom_kills": "count", "perf_cpu_seconds": "seconds",
    "proc_cpu_seconds": "seconds", "proc_read_bytes": "bytes", "proc_write_bytes": "bytes",
    "proc_major_faults": "count", "rusage_cpu_seconds": "seconds",
}  # fmt: skip


class Job(NamedTuple):
    """A job that is run again and again, each time a little differently."""

    name: str
    team: str
    seconds: float
    cpus: float
    memory: float
    steadiness: float  # how much it differs from run to run


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or not arguments[0].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    began = time.monotonic()
    size = generate(int(arguments[0]), arguments[1])
    took = time.monotonic() - began
    print(f"{arguments[0]} runs in {arguments[1]}: {size / 2**20:,.0f} MiB of journals, written in {took:.1f} s")
    return 0


def generate(count: int, store: str, *, seed: int = 1, until: float | None = None) -> int:
    """Write `count` runs that ended before `until` (now), oldest first, and return the bytes they take."""
    rng = random.Random(seed)
    jobs = make_jobs(rng)
    end = time.time() if until is None else until
    size = 0
    for first in range(0, count, RUNS_PER_FILE):
        described = {key: m.described() for key, m in measurements().items()}
        file = shared_journal(store, f"synthetic-{first:09d}", {"host": HOST, "user": "ada", "measurements": described})
        for number in range(first, min(first + RUNS_PER_FILE, count)):
            started = end - SPAN * (1 - number / count) - 7200
            write_run(file, make_run(rng, rng.choice(jobs), number, started))
        file.sync()
        size += os.path.getsize(file.path)
        file.close()
    return size


def make_jobs(rng: random.Random) -> list[Job]:
    return [
        Job(
            f"{step}-{dataset}", rng.choice("abcd"), rng.lognormvariate(2.5, 1.3), rng.choice((1, 1, 2, 4, 8)),
            rng.lognormvariate(math.log(300e6), 1.5), rng.uniform(0.05, 0.4),
        )
        for step in STEPS
        for dataset in DATASETS
    ]  # fmt: skip


def measurements() -> dict[str, Measurement]:
    kinds = ((GAUGES, Kind.GAUGE), (COUNTERS, Kind.COUNTER))
    return {
        key: Measurement(key, unit, kind, Across.LAST, Quality.SAMPLED, "Synthetic.")
        for keys, kind in kinds
        for key, unit in keys.items()
    }


def make_run(rng: random.Random, job: Job, number: int, started: float) -> tuple[Record, list[JournalWindow]]:
    """One run, with figures that agree with each other."""
    (status,) = rng.choices(STATUSES, SHARES)
    wall = round(
        job.seconds * rng.lognormvariate(0, job.steadiness) * (0.4 if status is not Status.COMPLETED else 1), 3
    )
    cpu = round(wall * job.cpus * rng.uniform(0.5, 0.98), 4)
    requested = 2 ** math.ceil(math.log2(job.memory * 1.3))
    memory = (
        requested if status is Status.OOM else min(int(job.memory * rng.lognormvariate(0, job.steadiness)), requested)
    )
    processes = rng.randint(1, 12)
    written = int(memory * rng.uniform(0, 0.5))
    summary = make_summary(cpu, wall, memory, processes, written, status is Status.OOM)
    exit_code, signal = ENDS.get(status, (None, 9))
    record: Any = {
        "schema": SCHEMA,
        "id": f"{''.join(rng.choices(LETTERS, k=5))}{number:07d}",
        "name": job.name,
        "command": ["python", f"{job.name.partition('-')[0]}.py", "--seed", str(number)],
        "cwd": f"/home/ada/{job.name}",
        "labels": {"team": job.team, "commit": f"{number // 5000:07x}"},
        "host": HOST,
        "user": "ada",
        "started": utc(started),
        "requirement": {"cpus": job.cpus, "memory_bytes": requested, "runtime_seconds": math.ceil(job.seconds * 3)},
        "ended": utc(started + wall),
        "wall_seconds": wall,
        "outcome": {"status": status.value, "exit_code": exit_code, "signal": signal},
        "usage": make_usage(summary, cpu, wall),
        "measurements": summary,
        "processes": [
            {"pid": 4000 + n, "cmd": f"python {job.name} {n}", "cpu_seconds": round(cpu / processes, 3),
             "rss_peak_bytes": memory // processes, "seconds": wall}
            for n in range(min(processes, 4))
        ],
        "provenance": {
            "version": "0.1.0", "selected": list(summary), "samples": int(wall) + 5, "interval_seconds": 1.0,
            "collectors": {name: {"available": True} for name in ("cgroup", "perf", "proc", "rusage")},
            "meter_cpu_seconds": 0.02,
        },
    }  # fmt: skip
    return record, list(make_windows(rng, wall, cpu, memory, processes))


def make_summary(
    cpu: float, wall: float, memory: int, processes: int, written: int, oom: bool
) -> dict[str, dict[str, Any]]:
    percent = round(100 * cpu / wall, 2)
    values: dict[str, float] = {
        "cgroup_mem_peak": memory + (8 << 20), "cgroup_file": 8 << 20, "cgroup_held": memory,
        "cgroup_cpu_percent": percent, "proc_rss_total": int(memory * 1.1), "proc_hwm_max": memory // processes,
        "proc_cpu_percent": percent, "proc_processes": processes, "cgroup_cpu_seconds": cpu, "perf_cpu_seconds": cpu,
        "cgroup_oom_kills": int(oom), "proc_cpu_seconds": cpu, "proc_read_bytes": written // 2,
        "proc_write_bytes": written, "proc_major_faults": 3, "rusage_cpu_seconds": cpu,
    }  # fmt: skip
    gauges = {
        key: {"unit": unit, "kind": "gauge", "peak": values[key], "mean": round(values[key] * 0.7, 2),
              "p95": values[key]}
        for key, unit in GAUGES.items()
    }  # fmt: skip
    return {
        **gauges,
        **{key: {"unit": unit, "kind": "counter", "total": values[key]} for key, unit in COUNTERS.items()},
    }


def make_usage(summary: dict[str, dict[str, Any]], cpu: float, wall: float) -> dict[str, Any]:
    def figure(value: float, key: str, quality: str) -> dict[str, Any]:
        return {"value": value, "from": key, "quality": quality}

    held = summary["cgroup_held"]
    percent = summary["cgroup_cpu_percent"]["peak"]
    return {
        "cpu_seconds": figure(cpu, "cgroup_cpu_seconds", "exact"),
        "cpu_peak_percent": figure(percent, "cgroup_cpu_percent", "sampled"),
        "cpu_mean_percent": figure(round(100 * cpu / wall, 2), "cgroup_cpu_seconds", "exact"),
        "memory_peak_bytes": figure(held["peak"], "cgroup_held", "sampled"),
        "memory_mean_bytes": figure(int(held["mean"]), "cgroup_held", "sampled"),
        "read_bytes": figure(summary["proc_read_bytes"]["total"], "proc_read_bytes", "at least"),
        "write_bytes": figure(summary["proc_write_bytes"]["total"], "proc_write_bytes", "at least"),
        "processes_peak": figure(summary["proc_processes"]["peak"], "proc_processes", "sampled"),
    }


def make_windows(rng: random.Random, wall: float, cpu: float, memory: int, processes: int) -> Iterator[JournalWindow]:
    """A window every ten seconds, as `run` writes them; a long run gets only the first 30."""
    count = min(math.ceil(wall / 10), 30)
    for number in range(1, count + 1):
        share = rng.uniform(0.6, 1.0)
        cells = {
            "cgroup_held": [int(memory * share), int(memory * share * 0.9)],
            "cgroup_cpu_seconds": round(cpu / count, 3),
            "cgroup_file": 8 << 20,
            "proc_processes": processes,
            "proc_rss_total": int(memory * share * 1.1),
            "proc_read_bytes": 4096,
            "proc_write_bytes": 8192,
        }
        yield JournalWindow(round(min(10.0 * number, wall), 2), 10, cells)


def write_run(file: JournalFile, run: tuple[Record, list[JournalWindow]]) -> None:
    record, windows = run
    writer = JournalWriter("", record["id"], shared=file)
    header_keys = ("id", "name", "command", "cwd", "labels", "started", "requirement")
    writer.begin({key: value for key, value in record.items() if key in header_keys})
    for window in windows:
        writer.window(window.seconds, window.samples, window.cells, [])
    writer.record(record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
