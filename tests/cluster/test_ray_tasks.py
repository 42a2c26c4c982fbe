"""What titles and amounts of Ray mean, and what there is for nodes that share a machine."""

from __future__ import annotations

import pytest

from jobmeter.cluster.node_sampler import NodeFacts
from jobmeter.cluster.ray_capacity import SampledNode, capacities
from jobmeter.cluster.ray_tasks import TaskNames, TaskTable, resource_values, task_of

GIB = 2.0**30


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("ray::train", "train"),
        ("ray::train()", "train"),
        ("ray::Server.ask", "Server.ask"),
        ("ray::Server(id=3).ask", "Server.ask"),
        ("ray::IDLE", None),
        ("ray::IDLE_SpillWorker", None),
        ("ray::DashboardAgent", None),
        ("ray::RuntimeEnvAgent", None),
        ("ray::JobmeterSampler.read", None),
        ("ray::JobmeterSampler", None),
        ("/usr/bin/python train.py", None),
        ("ray::", None),
    ],
)
def test_the_title_of_a_worker_names_what_it_runs(title: str, name: str | None) -> None:
    assert name == task_of(title)


def test_amounts_have_our_names_and_marks_of_nodes_are_left_out() -> None:
    resources = {
        "CPU": 2.0, "GPU": 1.0, "memory": 5.0, "object_store_memory": 7.0, "node:10.0.0.1": 1.0,
        "node:__internal_head__": 1.0, "licence": 3.0, "CPU_group_0_abc": 2.0, "bundle_group_abc": 1000.0,
    }  # fmt: skip
    assert {
        "reserved_cpus": 2.0, "reserved_gpus": 1.0, "reserved_memory_bytes": 5.0, "reserved_object_store_bytes": 7.0,
        "reserved_custom.licence": 3.0,
    } == resource_values(resources, "reserved_")  # fmt: skip


def test_a_call_of_an_actor_counts_for_its_class_and_a_task_with_a_dot_for_itself() -> None:
    names = TaskNames(lambda: TaskTable({}, {}, frozenset({"step.1"})))
    names.refresh(needed=True)
    assert ["Server", "step.1", "train"] == [names.group(each) for each in ("Server.ask", "step.1", "train")]


def facts(host: str = "h", cpus: float = 8.0, memory: float = 16 * GIB, host_cpus: float = 8.0) -> NodeFacts:
    return NodeFacts(host, host, host_cpus, 16 * GIB, cpus, memory)


def test_a_node_that_has_its_machine_for_itself_is_the_machine() -> None:
    capacity = capacities({"a": SampledNode(facts(), {"cpus": 4.0}), "b": SampledNode(facts("other"), {"cpus": 4.0})})
    assert ("machine", 8.0, 16 * GIB) == (capacity["a"].scope, *capacity["a"].values.values())


def test_a_node_in_a_container_with_less_is_its_processes() -> None:
    (capacity,) = capacities({"a": SampledNode(facts(cpus=2.0, memory=4 * GIB), {"cpus": 2.0})}).values()
    assert ("processes", {"capacity_cpus": 2.0, "capacity_memory_bytes": 4 * GIB}) == capacity


def test_nodes_that_share_a_machine_share_its_cpus_by_what_can_be_reserved_on_each() -> None:
    nodes = {
        "head": SampledNode(facts(), {"memory_bytes": GIB}),
        "small": SampledNode(facts(), {"cpus": 4.0, "memory_bytes": GIB, "object_store_bytes": GIB}),
        "large": SampledNode(facts(), {"cpus": 12.0, "memory_bytes": 30 * GIB}),
    }
    capacity = capacities(nodes)
    assert {"processes"} == {each.scope for each in capacity.values()}
    assert "capacity_cpus" not in capacity["head"].values
    assert 8.0 * 4 / 12 == pytest.approx(capacity["small"].values["capacity_cpus"])  # 4 and, of 12, the 8 there are
    assert 8.0 == pytest.approx(sum(each.values.get("capacity_cpus", 0.0) for each in capacity.values()))
    assert 16 * GIB == pytest.approx(sum(each.values["capacity_memory_bytes"] for each in capacity.values()))


def test_of_a_node_that_has_not_answered_nothing_is_known() -> None:
    assert {} == capacities({"a": SampledNode(None, {"cpus": 4.0})})["a"].values
