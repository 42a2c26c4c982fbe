"""What the driver, the mailbox and the nodes must agree on."""

from __future__ import annotations

from typing import Any, NamedTuple

PROTOCOL = 1
"""Changes whenever one side would not understand the other."""
NAMESPACE = "jobmeter"
CUSTOM = "custom."
"""Begins the name of an amount that has a name of the cluster's own."""
TICK = 0.25
"""Seconds after which a job that still runs reports for the first time."""
SLOW_TICK = 1.0


class Order(NamedTuple):
    """What a node is to run."""

    id: str
    key: str  # of the engine that sends it
    task: dict[str, Any]  # as `Task.as_json` has it
    marker: tuple[str, str]
    protocol: int = PROTOCOL
    working_directory: str | None = None  # of the runner, if Ray takes a copy of it to the nodes


class NodeInfo(NamedTuple):
    """A node of the cluster that is alive."""

    id: str
    name: str
    cpus: float
    memory_bytes: int
    gpus: float
    custom: tuple[tuple[str, float], ...] = ()  # by their names, as Ray has them

    def amounts(self) -> dict[str, float]:
        """What it has, by the names of a `Need`."""
        usual = {"cpus": self.cpus, "memory_bytes": float(self.memory_bytes), "gpus": self.gpus}
        return {**usual, **{CUSTOM + name: amount for name, amount in self.custom}}

    def short(self) -> str:
        """How it is named to people: several nodes may be on one machine."""
        return f"{self.name} ({self.id[:8]})"


def mailbox_name(key: str) -> str:
    return f"jobmeter-{key}"
