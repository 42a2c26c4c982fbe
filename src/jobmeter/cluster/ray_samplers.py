"""One sampler on every node of a Ray cluster, following nodes that join and leave."""

from __future__ import annotations

from typing import Any, NamedTuple

from jobmeter.cluster.node_sampler import NodeFacts, NodeReading
from jobmeter.cluster.ray_connection import RayConnection
from jobmeter.cluster.ray_sampler import JobmeterSampler

_ANSWER = 2.0
"""Seconds that a sample waits for the nodes; an answer that is late goes into the next sample."""
_FIRST_ANSWER = 20.0
"""Seconds that the very first sample waits: Ray has to start a process on each node."""


class _Sampler:
    """The actor on one node."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.facts: NodeFacts | None = None
        self.asked: dict[str, Any] = {"facts": actor.facts.remote()}  # calls that it has not answered yet
        self.cpu_seconds = 0.0


class Sampled(NamedTuple):
    """What the samplers answered, by node."""

    facts: dict[str, NodeFacts]
    readings: dict[str, NodeReading]


class Samplers:
    """Starts, reads and ends the samplers."""

    def __init__(self, connection: RayConnection, notes: list[str]) -> None:
        self._connection = connection
        self._notes = notes
        self._samplers: dict[str, _Sampler] = {}
        self._broken: set[str] = set()  # nodes whose sampler failed; none is started there again
        self._hosts: dict[str, str] = {}  # node → name of its host, also for nodes that have left
        self._gone_cpu = 0.0
        self._answered = False

    def name(self, node: str) -> str:
        """The name of a node in reports: its host, and the start of its id if several nodes are, or were, on it."""
        host = self._hosts.get(node) or node[:8]
        several = sum(each == host for each in self._hosts.values()) > 1
        return f"{host}-{node[:4]}" if several else host

    def host(self, node: str) -> str:
        sampler = self._samplers.get(node)
        return sampler.facts.host_id if sampler is not None and sampler.facts is not None else node

    def read(self, alive: set[str]) -> Sampled:
        """Read all nodes that are `alive`; the samplers of others are forgotten."""
        for node in self._samplers.keys() - alive:
            self._gone_cpu += self._samplers.pop(node).cpu_seconds
        new = alive - self._samplers.keys() - self._broken
        if new:
            self._learn_names()
        for node in sorted(new):
            self._samplers[node] = _Sampler(self._start(node))
        for sampler in self._samplers.values():
            if "reading" not in sampler.asked:
                sampler.asked["reading"] = sampler.actor.read.remote()
        self._wait()
        readings: dict[str, NodeReading] = {}
        for node, sampler in list(self._samplers.items()):
            for what, reference in list(sampler.asked.items()):
                answer = self._answer(node, reference)
                if node not in self._samplers:
                    break
                if answer is None:
                    continue
                sampler.asked.pop(what, None)
                if what == "facts":
                    sampler.facts = answer
                else:
                    readings[node] = answer
                    sampler.cpu_seconds = answer.cpu_seconds
        self._answered = self._answered or bool(readings)
        facts = {node: sampler.facts for node, sampler in self._samplers.items() if sampler.facts is not None}
        return Sampled(facts, readings)

    def _wait(self) -> None:
        asked = [reference for sampler in self._samplers.values() for reference in sampler.asked.values()]
        if asked:
            timeout = _ANSWER if self._answered else _FIRST_ANSWER
            self._connection.ray.wait(asked, num_returns=len(asked), timeout=timeout)

    def _answer(self, node: str, reference: Any) -> Any:
        """The answer to a call; None if there is none yet, or never will be. A sampler that failed is noted once."""
        ray = self._connection.ray
        ready, _ = ray.wait([reference], timeout=0)
        if not ready:
            return None
        try:
            return ray.get(reference)
        except ray.exceptions.RayError as error:
            # The sampler of a node that died needs no note: the node is reported as lost.
            if node in {each["NodeID"] for each in ray.nodes() if each["Alive"]}:
                self._broken.add(node)
                why = " ".join(str(error).split())
                missing = "No module named 'jobmeter" in why
                short = "this version of jobmeter is not installed there" if missing else why[-200:]
                self._notes.append(f"node {self.name(node)}: what it uses is not known: {short}")
            if (sampler := self._samplers.pop(node, None)) is not None:
                self._gone_cpu += sampler.cpu_seconds
            return None

    def _start(self, node: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor = self._connection.ray.remote(JobmeterSampler).options(
            num_cpus=0,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        return actor.remote(self._connection.session_directory, node)

    def _learn_names(self) -> None:
        for node in self._connection.ray.nodes():
            if node["Alive"] or node["NodeID"] in self._hosts:
                self._hosts[node["NodeID"]] = str(node.get("NodeManagerHostname") or node.get("NodeManagerAddress", ""))

    def cpu_seconds(self) -> float:
        return self._gone_cpu + sum(sampler.cpu_seconds for sampler in self._samplers.values())

    def close(self) -> None:
        for sampler in self._samplers.values():
            self._connection.ray.kill(sampler.actor)
        self._samplers.clear()
