"""This machine as a cluster of one node. What the running jobs of the store request counts as reserved."""

from __future__ import annotations

import os
from collections.abc import Callable

from jobmeter.analyse.cluster.model import Values
from jobmeter.cluster.contract import ClusterReading, NodeState
from jobmeter.cluster.node_sampler import NodeSampler
from jobmeter.errors import StoreError, UsageError
from jobmeter.model import Status
from jobmeter.store import Selection, Store, open_store

_AMOUNTS = (
    ("requirement_cpus", "cpus"),
    ("requirement_memory_bytes", "memory_bytes"),
    ("requirement_gpus", "gpus"),
)


class LocalSource:
    """Reads this machine in this process."""

    def __init__(self, address: str | None, store: str | None, warn: Callable[[str], None]) -> None:
        """Without a store it is not known what running jobs request. Raises UsageError if there is an address."""
        if address is not None:
            raise UsageError("--address: the local engine has none; it goes with --engine ray")
        self.notes: list[str] = []
        self._location = store
        self._warn = warn
        self._store: Store | None = None
        self._sampler: NodeSampler | None = None

    def open(self) -> str:
        self._sampler = NodeSampler()
        self._sampler.wait_for_gpus()
        self._facts = self._sampler.facts()
        if self._location is None or not os.path.isdir(self._location):
            self.notes.append("without a store it is not known what running jobs request")
            return self._facts.host_name
        try:
            self._store = open_store(self._location, self._warn)
        except StoreError as error:
            self.notes.append(f"what running jobs request is not known: {error}")
        return self._facts.host_name

    def read(self) -> ClusterReading:
        assert self._sampler is not None, "it was not opened"
        name = self._facts.host_name
        values = dict(self._sampler.read().machine)
        # The machine's use is compared with what the machine has, even if this process may use only a part of it.
        values["capacity_cpus"] = values["total_cpus"] = self._facts.host_cpus
        if self._facts.host_memory_bytes is not None:
            values["capacity_memory_bytes"] = values["total_memory_bytes"] = self._facts.host_memory_bytes
        if "capacity_gpus" in values:
            values["total_gpus"] = values["capacity_gpus"]
        tasks: dict[str, dict[str, float]] = {}
        requests: dict[str, Values] = {}
        running = 0
        if self._store is not None:
            running = self._running(values, tasks, requests)
        state = NodeState(name, name, self._facts.host_id, "machine")
        return ClusterReading(
            {name: state},
            {name: values},
            tasks=tasks,
            requests=requests,
            is_idle=self._store is not None and not running,
        )

    def _running(
        self, values: dict[str, float], tasks: dict[str, dict[str, float]], requests: dict[str, Values]
    ) -> int:
        """Add up what the jobs that run here now request; returns the number of these jobs."""
        assert self._store is not None
        self._store.update()
        values.update({"reserved_cpus": 0.0, "reserved_memory_bytes": 0.0, "reserved_gpus": 0.0})
        count = 0
        for run in self._store.runs(Selection(statuses=(Status.RUNNING,))):
            if run.get("host") != os.uname().nodename:
                continue
            count += 1
            task = tasks.setdefault(str(run["name"]), {"running": 0.0})
            task["running"] += 1
            request = {short: float(run[field]) for field, short in _AMOUNTS if run.get(field) is not None}
            if request:
                requests[str(run["name"])] = request
            for short, amount in request.items():
                values[f"reserved_{short}"] += amount
        if "total_gpus" not in values:
            del values["reserved_gpus"]
        return count

    def cpu_seconds(self) -> float:
        return 0.0  # this process does all of the sampling

    def close(self) -> None:
        if self._sampler is not None:
            self._sampler.close()
