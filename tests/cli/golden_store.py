"""A store whose figures never change: a sweep of a workflow, a job that a retry helped, runs of another tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.runs import keep, record, windows

MIB, GIB = 2**20, 2**30
LR = ("0.001", "0.002")
SEEDS = (11, 12, 13)
WORKFLOW = {"id": "sweep", "name": "sweep", "run_id": 1}


def make_store(folder: Path) -> str:
    runs = [*_sweep(), *_hog(), *_slurm(), *_single()]
    keep(str(folder), *runs, cells=windows(12, seconds=5.0, megabytes=208))
    _keep_plan(folder)
    return str(folder)


def _run(number: int, name: str, status: str = "completed", **parts: Any) -> Any:
    """A run that started so many minutes after noon; `cpu` and `memory` are usage, the rest as in a record."""
    wall = parts.pop("wall_seconds", 61.25)
    cpu, memory = parts.pop("cpu", 55.5), parts.pop("memory", 208 * MIB)
    made = record(f"golden{number:06}", name, status, wall_seconds=wall)
    made["started"] = f"2026-01-31T12:{number:02}:00.000Z"
    made["ended"] = f"2026-01-31T13:{number:02}:00.000Z"
    figures = {
        "cpu_seconds": (cpu, "cgroup_cpu_seconds", "exact"),
        "cpu_mean_percent": (round(100 * cpu / wall, 1), "cgroup_cpu_seconds", "exact"),
        "cpu_peak_percent": (98.5, "proc_cpu_percent", "sampled"),
        "memory_peak_bytes": (memory, "cgroup_mem_peak", "exact"),
        "memory_mean_bytes": (memory // 2, "proc_memory", "sampled"),
    }
    made["usage"] = {
        key: {"value": value, "from": source, "quality": quality} for key, (value, source, quality) in figures.items()
    }
    made["processes"] = [
        {"pid": 4711, "cmd": f"python train.py --config configs/large/{name}.yaml --verbose", "cpu_seconds": cpu,
         "rss_peak_bytes": memory, "seconds": wall}
    ]  # fmt: skip
    made["command"] = ["python", "train.py", "--config", f"configs/large/{name}.yaml", "--verbose"]
    # In the order in which records are written: what the index needs comes first.
    return {**parts, **{name: value for name, value in made.items() if name not in parts}}


def _sweep() -> list[Any]:
    requirement = {"cpus": 1, "memory_bytes": 512 * MIB, "runtime_seconds": 120}
    return [
        _run(
            number,
            f"train-lr{lr}-seed{seed}",
            labels={"model": "ab"[LR.index(lr)]},
            requirement=requirement,
            memory=(200 + 8 * number) * MIB,
            workflow=_job(number, f"train-lr{lr}-seed{seed}", "train"),
        )
        for number, (lr, seed) in enumerate(((lr, seed) for lr in LR for seed in SEEDS), 1)
    ]


def _hog() -> list[Any]:
    """Ran out of memory, and completed with more; and one that failed."""
    requirement = {"memory_bytes": 256 * MIB, "cpus": 0.5}
    grown = {"memory_bytes": 384 * MIB, "cpus": 0.5}
    oom = {"status": "oom", "exit_code": None, "signal": 9}
    failed = {"status": "failed", "exit_code": 3, "signal": None}
    return [
        _run(7, "hog", "oom", outcome=oom, requirement=requirement, memory=256 * MIB, cpu=20.0,
             workflow=_job(7, "hog")),
        _run(8, "hog", requirement=grown, memory=300 * MIB, cpu=20.0, workflow=_job(7, "hog", attempt=2)),
        _run(9, "fetch", "failed", outcome=failed, wall_seconds=0.041, cpu=0.0123, memory=9 * MIB,
             workflow=_job(8, "fetch")),
    ]  # fmt: skip


def _slurm() -> list[Any]:
    """Two runs that were imported, one of a name that jobmeter measured, too."""
    imported = {"version": "0.1.0", "imported": {"from": "slurm", "where": "sacct.txt: line 2"}}
    runs = [_run(10, "single", memory=3 * GIB, provenance=imported), _run(11, "align", provenance=imported)]
    for run in runs:
        for figure in run["usage"].values():
            figure["from"], figure["quality"] = "slurm_" + figure["from"].partition("_")[2], "at least"
    return runs


def _single() -> list[Any]:
    requirement = {"memory_bytes": GIB, "runtime_seconds": 60, "cpus": 8}
    return [
        _run(12, "single", requirement=requirement, memory=2560 * MIB, command=["sh", "single.sh"]),
        _run(13, "single", requirement=requirement, memory=700 * MIB, wall_seconds=4325.5, cpu=36000.25),
    ]


def _job(number: int, name: str, step: str | None = None, attempt: int = 1) -> dict[str, Any]:
    return {**WORKFLOW, "job_id": number, "step": step or name, "attempt": attempt, "fingerprint": "f"}


def _keep_plan(folder: Path) -> None:
    sweep = [f"train-lr{lr}-seed{seed}" for lr in LR for seed in SEEDS]
    jobs = [
        {"job_id": number, "name": name, "step": "train" if number <= len(sweep) else name, "blocked_by": [],
         "requirement": {"memory_bytes": (256 if name == "hog" else 512) * MIB}}
        for number, name in enumerate([*sweep, "hog", "fetch", "evaluate-all-models-of-the-sweep"], 1)
    ]  # fmt: skip
    jobs[-1]["blocked_by"] = [8]
    plan = {"schema": "jobmeter.workflow/1", "id": "sweep", "name": "sweep", "run_id": 1, "spec": "/data/sweep.yaml",
            "started": "2026-01-31T12:00:00.000Z", "engine": "local", "capacity": {}, "jobs": jobs}  # fmt: skip
    place = folder / "workflows" / "sweep" / "1"
    place.mkdir(parents=True)
    (place / "plan.json").write_text(json.dumps(plan))
