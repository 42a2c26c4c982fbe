"""What the driver, the mailbox and the nodes must agree on."""

from __future__ import annotations

from typing import Any, NamedTuple

PROTOCOL = 1
"""The version of the protocol: changes whenever one side would not understand the other."""
NAMESPACE = "jobmeter"
CUSTOM = "custom."
"""Prefix of the names of custom resources in a `Need`."""
TICK = 0.25
"""Seconds between two reports of a job in its first seconds; after these, it is SLOW_TICK."""
SLOW_TICK = 1.0


class Order(NamedTuple):
    """What a node is to run."""

    id: str
    key: str  # of the engine that sends it
    task: dict[str, Any]  # as `Task.as_json` has it
    marker: tuple[str, str]
    protocol: int = PROTOCOL
    working_directory: str | None = None  # of the runner, if Ray copies it to the nodes


class NodeInfo(NamedTuple):
    """A node of the cluster that is alive."""

    id: str
    name: str
    cpus: float
    memory_bytes: int
    gpus: float
    custom: tuple[tuple[str, float], ...] = ()  # custom resources: Ray's name, and the amount

    def amounts(self) -> dict[str, float]:
        """What the node has, by the names that a `Need` uses."""
        usual = {"cpus": self.cpus, "memory_bytes": float(self.memory_bytes), "gpus": self.gpus}
        return {**usual, **{CUSTOM + name: amount for name, amount in self.custom}}

    def short(self) -> str:
        """The name of the node in messages, with its id: several nodes may be on one machine."""
        return f"{self.name} ({self.id[:8]})"


def mailbox_name(key: str) -> str:
    return f"jobmeter-{key}"
