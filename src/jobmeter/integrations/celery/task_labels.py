"""The labels of a task's run: what Celery knows of the task."""

from __future__ import annotations

from typing import Any

TASK_ID = "task_id"
STATE = "state"


def labels_of(request: Any, task_name: str, worker: str) -> dict[str, str]:
    """The labels from the request of a task, in the pool or in the worker; what the request does not have is absent."""
    delivery = getattr(request, "delivery_info", None) or {}
    labels = {
        TASK_ID: request.id,
        "task": task_name,
        "queue": delivery.get("routing_key"),
        "worker": worker,
        "retries": getattr(request, "retries", None) or 0,
        "root_id": getattr(request, "root_id", None),
        "parent_id": getattr(request, "parent_id", None),
        "redelivered": "true" if delivery.get("redelivered") else None,
    }
    return {name: str(value) for name, value in labels.items() if value is not None and value != ""}
