"""Makes histories of clusters by hand: what each node had at each second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobmeter.analyse.cluster.model import ClusterSample, History, Node, Waiting

GIB = 2.0**30


def values(
    *, reserved: float = 0.0, used: float = 0.0, waited: float = 0.0, cpus: float = 4.0, memory: float = 1.0
) -> dict[str, float]:
    """A node of 4 CPUs and 16 GiB; `memory` is used, in GiB."""
    return {
        "reserved_cpus": reserved, "total_cpus": cpus, "used_cpus": used, "waited_cpus": waited, "capacity_cpus": cpus,
        "used_memory_bytes": memory * GIB, "capacity_memory_bytes": 16 * GIB,
    }  # fmt: skip


def history(
    *samples: Mapping[str, Mapping[str, float]],
    tasks: Sequence[Mapping[str, Mapping[str, float]]] = (),
    waiting: Sequence[tuple[Waiting, ...]] = (),
    requests: Mapping[str, Mapping[str, float]] | None = None,
    interval: float = 10.0,
) -> History:
    """One with these samples of nodes, `interval` seconds apart."""
    made = History()
    made.requests = dict(requests or {})
    for node in dict.fromkeys(name for sample in samples for name in sample):
        made.nodes[node] = Node(node, node, f"host of {node}", "machine", 0.0)
    for at, sample in enumerate(samples):
        task = tasks[at] if tasks else {}
        wait = waiting[at] if waiting else ()
        made.add(ClusterSample(at * interval, interval if at else 0.0, sample, task, wait))
    return made


def steady(node: Mapping[str, float], count: int = 10, nodes: int = 1) -> list[dict[str, Mapping[str, float]]]:
    """Samples in which every node is the same all the time."""
    return [{f"n{number}": node for number in range(nodes)} for _ in range(count)]
