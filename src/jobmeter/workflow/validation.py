"""What is wrong with a workflow before it runs, and which fields of its spec have no effect on an engine."""

from __future__ import annotations

from typing import NamedTuple

from jobmeter.engines import DEFAULT, load_engine
from jobmeter.engines.contract import Capabilities
from jobmeter.workflow.inputs import missing_inputs
from jobmeter.workflow.plan import Plan, load_plan


class UnusedFields(NamedTuple):
    """Fields of a spec that have no effect."""

    nodes: list[str]  # requests of nodes, on an engine that requests none
    custom: list[str]  # custom resources, on an engine whose nodes have none
    ignored: list[str]  # on every engine

    def names(self) -> list[str]:
        return [*self.ignored, *self.nodes, *self.custom]


class Validation(NamedTuple):
    """A spec that can be read and planned."""

    jobs: int
    missing: list[str]  # a line for each file that a job needs and that is not there
    unused: UnusedFields


def validate(path: str) -> Validation:
    """Check a spec, for a run on the default engine. Raises UsageError if it cannot be read or planned."""
    plan = load_plan(path)
    capabilities = load_engine(DEFAULT).capabilities
    missing = missing_inputs(plan) if capabilities.shares_files else []
    return Validation(len(plan.jobs), missing, unused_fields(plan, capabilities))


def unused_fields(plan: Plan, capabilities: Capabilities) -> UnusedFields:
    """The fields of the spec that an engine with these capabilities does not use."""
    nodes = [*plan.node_requests.fields(), *(["num_nodes"] if any(job.num_nodes > 1 for job in plan.jobs) else [])]
    custom = sorted({name for job in plan.jobs for name in job.custom})
    return UnusedFields(
        [] if capabilities.has_nodes else nodes,
        [] if capabilities.has_custom else custom,
        list(plan.without_effect),
    )
