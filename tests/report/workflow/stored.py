"""A workflow that was run, as a store has it: a plan, and runs with figures that are known."""

from __future__ import annotations

import json
from typing import Any

from jobmeter.times import utc
from jobmeter.workflow.directory import SCHEMA, RunDirectory, new_run
from tests.runs import keep, windows, workflow_run

GIB = 2**30
START = 1_800_000_000.0


def entry(number: int, name: str, *blocked_by: int, step: str = "") -> dict[str, Any]:
    """A job of the plan, which requests 2 CPUs and 1 GiB."""
    return {
        "job_id": number,
        "name": name,
        "step": step or name,
        "command": f"./{name} --seed {number}",
        "requirement": {"cpus": 2, "memory_bytes": GIB},
        "blocked_by": list(blocked_by),
    }


def attempt(number: int, begin: float, seconds: float, gib: float, attempt: int = 1, **more: Any) -> Any:
    """An attempt at a job, which began so many seconds after the first and used so much memory."""
    run = workflow_run(
        f"run{number:04}{attempt}",
        number,
        attempt,
        wall_seconds=seconds,
        cpu_seconds=1.5 * seconds,
        cpu_peak_percent=180.0,
        cpu_mean_percent=150.0,
        memory_peak_bytes=int(gib * GIB),
        memory_mean_bytes=int(gib * GIB / 2),
        requirement={"cpus": 2, "memory_bytes": GIB},
        **more,
    )
    return {**run, "started": utc(START + begin)}


def store_workflow(store: str, jobs: list[dict[str, Any]], runs: list[Any], curves: bool = True) -> RunDirectory:
    """Store the plan of the workflow Demo, and these runs."""
    directory = new_run(store, "Demo")
    directory.release()
    plan = {
        "schema": SCHEMA, "id": "demo", "name": "Demo", "description": "A demonstration", "user": "", "run_id": 1,
        "spec": "/demo.yaml", "started": utc(START), "engine": "local",
        "capacity": {"cpus": 4, "memory_bytes": 4 * GIB}, "jobs": jobs,
    }  # fmt: skip
    with open(f"{directory.path}/plan.json", "w", encoding="utf-8") as file:
        json.dump(plan, file)
    keep(store, *runs, cells=windows(20, seconds=2.0, megabytes=700.0) if curves else [])
    return directory


def demo(store: str) -> RunDirectory:
    """Prepare, then three of a sweep (one over its request, one failed and tried again), then a job that waits."""
    sweep = "train_{i}"
    jobs = [
        entry(1, "prepare"),
        *(entry(number, f"train_{number}_with_a_name_that_is_rather_long", 1, step=sweep) for number in (2, 3, 4)),
        entry(5, "collect", 2, 3, 4),
        entry(6, "notify", 4),
    ]
    names = {job["job_id"]: {"name": job["name"], "step": job["step"]} for job in jobs}
    runs = [
        attempt(1, 0.0, 10.0, 0.5, **names[1]),
        attempt(2, 10.0, 40.0, 0.8, **names[2]),
        attempt(3, 10.0, 20.0, 1.5, **names[3]),
        attempt(4, 10.0, 5.0, 0.2, status="failed", **names[4]),
        attempt(4, 15.0, 5.0, 0.2, attempt=2, status="failed", **names[4]),
    ]
    return store_workflow(store, jobs, runs)
