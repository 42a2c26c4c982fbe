"""A finding about a cluster: what was seen, for how long, what to do, and the effect of doing it."""

from __future__ import annotations

from typing import NamedTuple

CLUSTER = "cluster"


class ClusterFinding(NamedTuple):
    """One finding. `amounts` has the numbers of `action`, by name, for programs."""

    kind: str
    severity: str  # problem or hint
    subject: str  # `cluster`, `node NAME` or `task NAME`
    seen: str
    seconds: float  # how long it lasted
    action: str
    effect: str  # empty if there is none to report
    amounts: dict[str, float] = {}


KINDS = {
    "cpu_bound": "CPUs are the limit: nearly all of them were really busy.",
    "over_reserved": "CPUs are reserved and not used.",
    "memory_bound": "Memory is the limit: nearly all of it was in use.",
    "memory_growth": "Memory only climbs.",
    "gpu_bound": "GPUs are the limit: nearly all of them were really busy.",
    "idle_gpu": "GPUs are reserved and not used.",
    "spilling": "The object store was too small: objects were moved to the disk.",
    "under_used": "Little of the cluster is reserved, and little of it used.",
    "skew": "Some nodes are full while others are idle.",
    "node_lost": "A node was lost.",
}
"""What each kind means."""
