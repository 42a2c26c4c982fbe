"""Reads a Ray cluster: what is reserved, from its head, and what is used, from a sampler on each node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jobmeter.analyse.cluster.model import Values, Waiting
from jobmeter.cluster.contract import ClusterReading, LostNode, NodeState
from jobmeter.cluster.node_sampler import NodeReading
from jobmeter.cluster.ray_capacity import SampledNode, capacities
from jobmeter.cluster.ray_connection import RayConnection
from jobmeter.cluster.ray_sampler import JobmeterSampler
from jobmeter.cluster.ray_samplers import Samplers
from jobmeter.cluster.ray_tasks import TaskNames, TaskTable, resource_values, task_of, task_table
from jobmeter.errors import LaunchError

_SHORT_USE = 0.05
"""If a worker that is idle now used at least this many CPUs, its use counts for the task that it ran before."""
_MACHINE_ONLY = (
    "load1",
    "cpu_pressure_percent",
    "memory_pressure_percent",
    "io_pressure_percent",
    "used_gpus",
    "capacity_gpus",
    "used_gpu_memory_bytes",
    "capacity_gpu_memory_bytes",
)
"""Values that are known only for the machine, and taken from it even if the use of a node is that of its processes."""


class _Reserved(NamedTuple):
    """The cluster as its head knows it."""

    total: dict[str, dict[str, float]]  # by node
    reserved: dict[str, dict[str, float]]
    gone: list[str]
    waiting: tuple[Waiting, ...]


class RaySource:
    """Reads a Ray cluster, without its dashboard."""

    def __init__(self, address: str | None, store: str, warn: Callable[[str], None]) -> None:
        self.notes: list[str] = []
        self._address = address
        self._connection: RayConnection
        self._samplers: Samplers
        self._names = TaskNames(self._read_tasks)
        self._last_names: dict[tuple[str, int], str] = {}  # (node, pid) → the task that it ran last
        self._alive: set[str] = set()

    def open(self) -> str:
        self._connection = RayConnection(self._address)
        self._samplers = Samplers(self._connection, self.notes)
        if not self._connection.has_dashboard:
            self.notes.append("the dashboard of this cluster is off; everything is read without it")
        return self._connection.address

    def read(self) -> ClusterReading:
        self._connection.check_alive()
        try:
            head = self._read_head()
        except Exception as error:  # noqa: BLE001 - Ray raises whatever its core raises
            raise LaunchError(f"the Ray cluster at {self._connection.address} is gone: {error}") from None
        lost = self._lost(head)
        sampled = self._samplers.read(set(head.total))
        scopes = capacities({node: SampledNode(sampled.facts.get(node), head.total[node]) for node in head.total})
        values: dict[str, Values] = {}
        tasks: dict[str, dict[str, float]] = {}
        for node, total in head.total.items():
            reading = sampled.readings.get(node)
            node_values = {f"total_{key}": amount for key, amount in total.items()}
            node_values.update({f"reserved_{key}": amount for key, amount in head.reserved[node].items()})
            if reading is not None:
                node_values.update(_used(reading, scopes[node].scope, node_values))
                self._add_tasks(tasks, node, reading)
            node_values.update(scopes[node].values)
            values[node] = node_values
        for task in tasks.values():
            if math.isnan(task["waited_cpus"]):
                del task["waited_cpus"]
        self._names.refresh(needed=bool(head.waiting) or any(name not in self._names.table.requests for name in tasks))
        for name, count in self._names.table.pending.items():
            tasks.setdefault(name, {})["pending"] = count
        return ClusterReading(
            self._states(set(head.total), scopes),
            values,
            lost,
            tasks,
            {name: request for name, request in self._names.table.requests.items() if name in tasks},
            head.waiting,
            self._actors(),
            not head.waiting and not tasks and not any(any(each.values()) for each in _held(head)),
        )

    def _read_head(self) -> _Reserved:
        from ray.core.generated.autoscaler_pb2 import GetClusterResourceStateReply, NodeStatus

        reply = GetClusterResourceStateReply()
        reply.ParseFromString(self._connection.gcs.get_cluster_resource_state())
        state = reply.cluster_resource_state
        read = _Reserved({}, {}, [], _waiting(state))
        for node in state.node_states:
            node_id = node.node_id.hex()
            if node.status == NodeStatus.DEAD:
                read.gone.append(node_id)
                continue
            total = resource_values(node.total_resources)
            available = resource_values(node.available_resources)
            read.total[node_id] = total
            # A resource that is used up is not listed as available.
            read.reserved[node_id] = {key: max(amount - available.get(key, 0.0), 0.0) for key, amount in total.items()}
        return read

    def _lost(self, head: _Reserved) -> tuple[LostNode, ...]:
        """The nodes that left since the last reading, and why."""
        left = self._alive - set(head.total)
        self._alive = set(head.total)
        if not left:
            return ()
        nodes = {node["NodeID"]: node for node in self._connection.ray.nodes()}
        return tuple(LostNode(node, _why(nodes.get(node, {}))) for node in sorted(left))

    def _states(self, nodes: set[str], scopes: Mapping[str, Any]) -> dict[str, NodeState]:
        return {
            node: NodeState(node, self._samplers.name(node), self._samplers.host(node), scopes[node].scope)
            for node in sorted(nodes, key=self._samplers.name)
        }

    def _add_tasks(self, tasks: dict[str, dict[str, float]], node: str, reading: NodeReading) -> None:
        """Add what the workers of a node use to the tasks that they run, by name."""
        for pid, title, use in reading.branches:
            running = task_of(title)
            name = running
            if name is None:
                # What the worker used since the last sample was used by the task that ended since then.
                ended = self._last_names.pop((node, pid), None)
                name = ended if use.get("used_cpus", 0.0) >= _SHORT_USE else None
            else:
                self._last_names[(node, pid)] = name
            if name is None:
                continue
            task = tasks.setdefault(self._names.group(name), {"running": 0.0})
            task["running"] = task.get("running", 0.0) + (running is not None)
            for key in ("used_cpus", "used_memory_bytes"):
                if key in use:
                    task[key] = task.get(key, 0.0) + use[key]
            # If it is unknown for one worker, it is unknown for the name: NaN, which `read` removes.
            task["waited_cpus"] = task.get("waited_cpus", 0.0) + use.get("waited_cpus", math.nan)

    def _read_tasks(self) -> TaskTable:
        try:
            return task_table(_task_events())
        except Exception as error:  # noqa: BLE001 - Ray's head, or its dashboard, may raise anything
            note = f"what tasks request, and which wait, is not known by name: {' '.join(str(error).split())[:200]}"
            if note not in self.notes:
                self.notes.append(note)
            return self._names.table

    def _actors(self) -> dict[str, float]:
        from ray._private import state

        try:
            alive = state.actors(actor_state_name="ALIVE")
        except Exception:  # noqa: BLE001 - their number is not worth losing a sample
            return {}
        # Samplers are not counted, also not those of other monitors.
        return {"actors": float(sum(each.get("ActorClassName") != JobmeterSampler.__name__ for each in alive.values()))}

    def cpu_seconds(self) -> float:
        return self._samplers.cpu_seconds()

    def close(self) -> None:
        """End the samplers; those of a cluster that is gone have ended with it."""
        if self._connection.is_alive:
            self._samplers.close()
        self._connection.close()


def _task_events() -> Any:
    """The events of all tasks that Ray's head keeps."""
    from ray._private import state

    if hasattr(state.state, "_get_all_task_events"):
        return state.state._get_all_task_events()
    # Earlier versions of Ray have no function for it.
    from ray.core.generated import gcs_pb2

    state.state._check_connected()
    events = state.state.global_state_accessor.get_task_events()
    return [gcs_pb2.TaskEvents.FromString(event) for event in events]


def _held(head: _Reserved) -> list[dict[str, float]]:
    """What tasks have reserved on each node. Objects are left out, as they stay after their tasks."""
    return [
        {key: amount for key, amount in reserved.items() if key != "object_store_bytes"}
        for reserved in head.reserved.values()
    ]


def _waiting(state: Any) -> tuple[Waiting, ...]:
    """What tasks and actors wait for, by amounts, and what placement groups wait for, bundle by bundle."""
    waiting = [
        Waiting(resource_values(each.request.resources_bundle), each.count) for each in state.pending_resource_requests
    ]
    for gang in state.pending_gang_resource_requests:
        waiting += [Waiting(resource_values(each.resources_bundle), 1) for each in gang.requests]
    return tuple(waiting)


def _used(reading: NodeReading, scope: str, reserved: Mapping[str, float]) -> dict[str, float]:
    spilled = {} if reading.spilled_bytes is None else {"spilled_bytes": reading.spilled_bytes}
    if scope == "machine":
        processes = {"processes": reading.processes["processes"]} if "processes" in reading.processes else {}
        return {**reading.machine, **processes, **spilled}
    used = {**reading.processes, **{key: reading.machine[key] for key in _MACHINE_ONLY if key in reading.machine}}
    if "used_memory_bytes" in used:
        # Objects are in memory that all processes of the node share, which the values of the processes leave out.
        used["used_memory_bytes"] += reserved.get("reserved_object_store_bytes", 0.0)
    return {**used, **spilled}


def _why(node: Mapping[str, Any]) -> str | None:
    """Why a node is gone; None if it left on request."""
    reason, message = node.get("DeathReason", 0), " ".join(str(node.get("DeathReasonMessage", "")).split())
    if reason in (1, 4):  # EXPECTED_TERMINATION, AUTOSCALER_DRAIN_IDLE of Ray's gcs.proto
        return None
    return message.rstrip(".") or "it no longer answers"
