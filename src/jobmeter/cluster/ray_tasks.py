"""Ray's tasks and actors by name: what runs, what waits, and what each requests."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from jobmeter.analyse.cluster.measures import CUSTOM
from jobmeter.cluster.ray_sampler import JobmeterSampler

_RESOURCES = {"CPU": "cpus", "GPU": "gpus", "memory": "memory_bytes", "object_store_memory": "object_store_bytes"}
_OWN = JobmeterSampler.__name__
_AGENTS = ("IDLE", "DashboardAgent", "RuntimeEnvAgent", "SpillWorker", "RestoreWorker")
"""The beginnings of titles of processes that run no task."""
_TASK, _ACTOR_CREATION = 0, 1
"""TaskType of Ray's common.proto."""
_WAITS_FOR_NODE, _SUBMITTED = 2, 5
"""TaskStatus: from the first on, a task waits for the resources that it requests; from the second on, it has them."""
_SHARE = 0.002
"""The share of the time that reading the events of all tasks may take. If there are many, they are read less often."""


def resource_values(resources: Mapping[str, float], prefix: str = "") -> dict[str, float]:
    """Ray's resources by our keys: `cpus`, `memory_bytes`, `custom.NAME`. Resources that mark a node are left out."""
    values = {}
    for name, amount in resources.items():
        if name in _RESOURCES:
            values[prefix + _RESOURCES[name]] = float(amount)
        # Resources of placement groups repeat what their bundles have reserved.
        elif not name.startswith(("node:", "bundle")) and "_group_" not in name:
            values[f"{prefix}{CUSTOM}{name}"] = float(amount)
    return values


def task_of(title: str) -> str | None:
    """The name of the task or actor call that a worker runs, by its title; None if it runs none."""
    if not title.startswith("ray::"):
        return None
    # The title of an actor may have a text in brackets, and earlier versions put brackets after a function.
    name = re.sub(r"\(.*?\)", "", title[5:]).strip()
    return None if not name or name.startswith((*_AGENTS, _OWN)) or name.endswith(_AGENTS[3:]) else name


class TaskTable(NamedTuple):
    """What is known about tasks, by name."""

    requests: dict[str, dict[str, float]]
    pending: dict[str, float]
    functions: frozenset[str]  # names of tasks that are no calls of actors


_EMPTY = TaskTable({}, {}, frozenset())


def task_table(events: Iterable[Any]) -> TaskTable:
    """The table made from the events of all tasks, as Ray's head keeps them."""
    requests: dict[str, dict[str, float]] = {}
    pending: dict[str, float] = {}
    functions = set()
    for event in events:
        info = event.task_info
        if info.type not in (_TASK, _ACTOR_CREATION) or not info.name or info.name.startswith(_OWN):
            continue
        name = info.name
        if info.type == _TASK:
            functions.add(name)
        else:
            name = name.removesuffix(".__init__")
        requests[name] = resource_values(info.required_resources)
        reached = max(event.state_updates.state_ts_ns, default=0)
        if _WAITS_FOR_NODE <= reached < _SUBMITTED:
            pending[name] = pending.get(name, 0.0) + 1
    return TaskTable(requests, pending, frozenset(functions))


class TaskNames:
    """Reads the events of tasks, only as often as that is cheap."""

    def __init__(self, read: Callable[[], TaskTable]) -> None:
        self._read = read
        self._next = 0.0
        self.table = _EMPTY

    def refresh(self, *, needed: bool) -> None:
        """Read the events again if they are needed and due. If they are not needed, no tasks are pending."""
        now = time.monotonic()
        if not needed or now < self._next:
            if not needed:
                self.table = self.table._replace(pending={})
            return
        self.table = self._read()
        self._next = now + (time.monotonic() - now) / _SHARE

    def group(self, name: str) -> str:
        """The name that a call counts for: for an actor's method, the class of the actor."""
        if name in self.table.functions or "." not in name:
            return name
        return name.partition(".")[0]
