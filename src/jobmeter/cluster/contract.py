"""What the monitor asks of a cluster: one source for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from jobmeter.analyse.cluster.model import Values, Waiting


class NodeState(NamedTuple):
    """A node that is there now."""

    id: str
    name: str
    host: str  # the same for nodes on one machine
    scope: str  # see `Node`


class LostNode(NamedTuple):
    """A node that is no longer there."""

    id: str
    why: str | None  # None: it left on request


class Observation(NamedTuple):
    """A cluster at one time, as its source sees it. What is not known is absent."""

    nodes: Mapping[str, NodeState]  # by id
    values: Mapping[str, Values]  # by id of the node
    lost: tuple[LostNode, ...] = ()
    tasks: Mapping[str, Values] = {}  # by name
    requests: Mapping[str, Values] = {}  # by name: what each requests
    waiting: tuple[Waiting, ...] = ()
    cluster: Values = {}
    is_idle: bool = False  # nothing runs, and nothing waits


class ClusterSource(Protocol):
    """Reads a cluster. Made with its address; nothing is connected before `open`."""

    notes: list[str]
    """What cannot be read, and why; each once."""

    def open(self) -> str:
        """Connect, and return the address. LaunchError when that cannot be."""

    def read(self) -> Observation:
        """The cluster now. LaunchError when it is no longer there."""

    def cpu_seconds(self) -> float:
        """CPU time that sampling has used on all nodes, that of this process not included."""

    def close(self) -> None:
        """Remove what was started."""
