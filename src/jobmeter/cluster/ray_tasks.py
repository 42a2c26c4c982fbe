"""Names of Ray's tasks and actors: what runs, what waits, and what each requests."""

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
"""How titles begin of processes that run no task."""
_TASK, _ACTOR_CREATION = 0, 1
"""TaskType of Ray's common.proto."""
_WAITS_FOR_NODE, _SUBMITTED = 2, 5
"""TaskStatus: from the first on it waits for what it requests, from the second on it has it."""
_SHARE = 0.002
"""Of the time: what reading the events of all tasks may take. It is read less often where there are many."""


def resource_values(resources: Mapping[str, float], prefix: str = "") -> dict[str, float]:
    """Amounts as Ray names them, by our keys: `cpus`, `memory_bytes`, `custom.NAME`. Marks of nodes are left out."""
    values = {}
    for name, amount in resources.items():
        if name in _RESOURCES:
            values[prefix + _RESOURCES[name]] = float(amount)
        # Those of placement groups repeat what their bundles have reserved.
        elif not name.startswith(("node:", "bundle")) and "_group_" not in name:
            values[f"{prefix}{CUSTOM}{name}"] = float(amount)
    return values


def task_of(title: str) -> str | None:
    """The name of the task or actor call that a worker runs, by its title; None when it runs none."""
    if not title.startswith("ray::"):
        return None
    # An actor may show what it is in brackets, and earlier versions put them behind a function.
    name = re.sub(r"\(.*?\)", "", title[5:]).strip()
    return None if not name or name.startswith((*_AGENTS, _OWN)) or name.endswith(_AGENTS[3:]) else name


class TaskTable(NamedTuple):
    """What is known of tasks by name."""

    requests: dict[str, dict[str, float]]
    pending: dict[str, float]
    functions: frozenset[str]  # names of tasks that are no calls of actors


_EMPTY = TaskTable({}, {}, frozenset())


def task_table(events: Iterable[Any]) -> TaskTable:
    """From the events of all tasks, as Ray's head keeps them."""
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
    """Reads the events of tasks, as often as that is cheap."""

    def __init__(self, read: Callable[[], TaskTable]) -> None:
        self._read = read
        self._next = 0.0
        self.table = _EMPTY

    def refresh(self, *, needed: bool) -> None:
        """Read anew if what is needed has changed and it is due."""
        now = time.monotonic()
        if not needed or now < self._next:
            if not needed:
                self.table = self.table._replace(pending={})
            return
        self.table = self._read()
        self._next = now + (time.monotonic() - now) / _SHARE

    def group(self, name: str) -> str:
        """The name that a call counts for: of an actor's method, its class."""
        if name in self.table.functions or "." not in name:
            return name
        return name.partition(".")[0]
