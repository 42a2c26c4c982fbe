"""The actor that samples a Ray node. It reserves nothing, and lives as long as the monitor does."""

from __future__ import annotations

import os

from jobmeter.cluster.node_sampler import NodeFacts, NodeReading, NodeSampler
from jobmeter.errors import NoData
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.kernel.procfs import read_stat


class JobmeterSampler:
    """The class of the actor; Ray shows its process by this name."""

    def __init__(self, session_directory: str, node_id: str) -> None:
        # Where Ray puts objects that do not fit into the object store, unless it is configured otherwise.
        spilled = (f"{session_directory}/ray_spilled_objects_{node_id}",)
        self._sampler = NodeSampler(raylet_above(THIS_MACHINE, os.getpid()), spilled)
        self._sampler.wait_for_gpus()

    def facts(self) -> NodeFacts:
        return self._sampler.facts()

    def read(self) -> NodeReading:
        return self._sampler.read()


def raylet_above(machine: Machine, pid: int) -> int:
    """The pid of the raylet that started a worker: all processes of its node descend from it."""
    while pid > 1:
        stat = read_stat(machine, pid)
        if stat.comm == b"raylet":
            return pid
        pid = stat.ppid
    raise NoData("no raylet above this worker")
