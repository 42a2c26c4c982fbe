"""The real capacity of each node, and whether the use of a node is that of its machine or of its processes.

If a node has its machine for itself, and may use all of it, its use is that of the machine: every process counts. If
several nodes share a machine, or a container or a cgroup gives the node less than the machine has, its use is that of
its own processes: its raylet and all descendants of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jobmeter.cluster.node_sampler import NodeFacts


class SampledNode(NamedTuple):
    """A node, and the facts from its sampler; None: the sampler has not answered."""

    facts: NodeFacts | None
    total: Mapping[str, float]  # what can be reserved


class Capacity(NamedTuple):
    scope: str
    values: dict[str, float]


def capacities(nodes: Mapping[str, SampledNode]) -> dict[str, Capacity]:
    """The capacity by node. A shared machine is divided by what can be reserved on each of its nodes: see `_part`."""
    by_host: dict[str, list[str]] = {}
    for node, sampled in nodes.items():
        if sampled.facts is not None:
            by_host.setdefault(sampled.facts.host_id, []).append(node)
    by_node = {}
    for node, sampled in nodes.items():
        if sampled.facts is None:
            by_node[node] = Capacity("machine", {})
            continue
        together = by_host[sampled.facts.host_id]
        if len(together) > 1:
            by_node[node] = Capacity("processes", _shared(node, {each: nodes[each] for each in together}))
        elif sampled.facts.is_limited:
            by_node[node] = Capacity("processes", _own(sampled.facts.cpus, sampled.facts.memory_bytes))
        else:
            by_node[node] = Capacity("machine", _own(sampled.facts.host_cpus, sampled.facts.host_memory_bytes))
    return by_node


def _own(cpus: float, memory_bytes: float | None) -> dict[str, float]:
    memory = {} if memory_bytes is None else {"capacity_memory_bytes": memory_bytes}
    return {"capacity_cpus": cpus, **memory}


def _shared(node: str, together: Mapping[str, SampledNode]) -> dict[str, float]:
    facts = together[node].facts
    assert facts is not None
    cpus = {each: min(sampled.total.get("cpus", 0.0), facts.cpus) for each, sampled in together.items()}
    values = {"capacity_cpus": _part(cpus, node, facts.cpus)}
    if facts.memory_bytes is not None:
        memory = {
            each: sampled.total.get("memory_bytes", 0.0) + sampled.total.get("object_store_bytes", 0.0)
            for each, sampled in together.items()
        }
        values["capacity_memory_bytes"] = _part(memory, node, facts.memory_bytes)
    return {key: amount for key, amount in values.items() if amount > 0}


def _part(claims: Mapping[str, float], node: str, there_is: float) -> float:
    """What a node may count on: what it claims, or its share if all together claim more than there is."""
    claimed = sum(claims.values())
    return claims[node] * min(there_is / claimed, 1.0) if claimed > 0 else 0.0
