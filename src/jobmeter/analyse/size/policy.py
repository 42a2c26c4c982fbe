"""The policy that the advice must follow."""

from __future__ import annotations

from typing import NamedTuple

from jobmeter.analyse.resource import GPU_MEMORY, MEMORY, RUNTIME, Resource
from jobmeter.analyse.size.pool import USUAL_TARGET, Terms

MEMORY_PLUS = 4.0 * 2**20
"""Bytes added to each request of memory: equal runs differ by this much."""

RUNTIME_PLUS = 1.0
"""Seconds added to each request of time, for the same reason."""
_PLUS = {MEMORY: MEMORY_PLUS, RUNTIME: RUNTIME_PLUS, GPU_MEMORY: MEMORY_PLUS}


class Policy(NamedTuple):
    target: float = USUAL_TARGET  # the share of runs that must not fail because too little was advised
    failure_cost: float = 1.0  # the price of a failure, in average runs of the workflow; 0: only what it holds
    below_peak: bool = False  # a time limit may be shorter than a run was

    def terms(self, resource: Resource) -> Terms:
        return Terms(self.target, self.failure_cost, _PLUS[resource])
