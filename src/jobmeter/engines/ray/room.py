"""What tasks need, and whether a cluster has room for it. Pure functions of nodes and requirements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jobmeter.engines.contract import Capacity
from jobmeter.engines.ray.protocol import CUSTOM, NodeInfo
from jobmeter.model import Requirement

Need = Mapping[str, float]
"""cpus, memory_bytes, gpus and `custom.NAME`, as far as they are requested."""


def need_of(requirement: Requirement, custom: Mapping[str, float] = {}) -> dict[str, float]:
    """What a job needs. A job that requests no CPUs counts as one CPU, so that a cluster does not get endless jobs."""
    amounts = {name: getattr(requirement, name) for name in ("cpus", "memory_bytes", "gpus")}
    requested = {name: value for name, value in amounts.items() if value is not None}
    return {"cpus": 1.0, **requested, **{CUSTOM + name: amount for name, amount in custom.items()}}


def largest(nodes: Iterable[NodeInfo]) -> Capacity:
    """The most that one job may request: what the largest node has. Jobs that do not fit yet wait."""
    nodes = list(nodes)
    custom: dict[str, float] = {}
    for name, amount in (each for node in nodes for each in node.custom):
        custom[name] = max(amount, custom.get(name, 0.0))
    return Capacity(
        custom=custom,
        largest=Requirement(
            max((node.cpus for node in nodes), default=0.0),
            max((node.memory_bytes for node in nodes), default=0),
            None,
            int(max((node.gpus for node in nodes), default=0)),
        ),
    )


def fits_together(need: Need, taken: Need, nodes: Sequence[NodeInfo]) -> bool:
    """Whether the whole cluster has room for `need` in addition to `taken`. Ray finds the node."""
    for name, amount in need.items():
        there_is = sum(node.amounts().get(name, 0.0) for node in nodes)
        if amount > 0 and amount + taken.get(name, 0) > there_is + 1e-9:
            return False
    return True


def fits_somewhere(need: Need, nodes: Iterable[NodeInfo]) -> bool:
    """Whether any node could run the job, if it did nothing else."""
    return any(all(amount <= node.amounts().get(name, 0.0) + 1e-9 for name, amount in need.items()) for node in nodes)
