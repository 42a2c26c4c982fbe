"""What workers report of themselves."""

from __future__ import annotations

from typing import Any

from jobmeter.engines.celery.placement import WorkerState


def worker(name: str, cpus: float, memory: float = 1e9, **more: Any) -> WorkerState:
    amounts = {"cpus": cpus, "memory_bytes": memory, "gpus": 0}
    fields = {
        "name": name, "host": "h", "version": "1", "protocol": 1, "queues": ("q",), "capacity": amounts,
        "free": amounts, "runtimes": (), "tasks": {}, "closing": False, **more,
    }  # fmt: skip
    return WorkerState(**fields)
