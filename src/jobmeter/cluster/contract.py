"""The interface between the monitor and a cluster: one source for each kind of cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from jobmeter.analyse.cluster.model import Values, Waiting


class NodeState(NamedTuple):
    """A node that is in the cluster now."""

    id: str
    name: str
    host: str  # the same for nodes on one machine
    scope: str  # see `Node`


class LostNode(NamedTuple):
    """A node that has left the cluster."""

    id: str
    why: str | None  # None: it left on request


class ClusterReading(NamedTuple):
    """A cluster at one time, as its source sees it. What is not known is absent."""

    nodes: Mapping[str, NodeState]  # by id
    values: Mapping[str, Values]  # by id of the node
    lost: tuple[LostNode, ...] = ()
    tasks: Mapping[str, Values] = {}  # by name
    requests: Mapping[str, Values] = {}  # by name: what each task of that name requests
    waiting: tuple[Waiting, ...] = ()
    cluster: Values = {}
    is_idle: bool = False  # nothing runs, and nothing waits


class ClusterSource(Protocol):
    """Reads a cluster. Constructed with its address, the store and a function for warnings; `open` connects."""

    notes: list[str]
    """What cannot be read, and why; each once."""

    def open(self) -> str:
        """Connect, and return the address. Raises LaunchError if that is not possible."""

    def read(self) -> ClusterReading:
        """The cluster now. Raises LaunchError if it is gone."""

    def cpu_seconds(self) -> float:
        """CPU time that sampling has used on all nodes, without that of this process."""

    def close(self) -> None:
        """End everything that was started."""
