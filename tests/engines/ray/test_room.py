"""What fits a cluster: pure functions."""

from __future__ import annotations

import pytest

from jobmeter.engines.ray.protocol import NodeInfo
from jobmeter.engines.ray.room import fits_somewhere, fits_together, largest, need_of
from jobmeter.model import Requirement

GIB = 1 << 30
NODES = (NodeInfo("a" * 56, "small", 2.0, 4 * GIB, 0.0), NodeInfo("b" * 56, "large", 4.0, 2 * GIB, 1.0))


def test_a_job_that_requests_nothing_takes_one_cpu() -> None:
    assert {"cpus": 1.0} == need_of(Requirement())
    assert {"cpus": 0.5, "memory_bytes": GIB, "gpus": 1} == need_of(Requirement(0.5, GIB, 60, 1))


def test_resources_with_names_of_their_own_are_counted_like_others() -> None:
    licensed = (*NODES, NodeInfo("c" * 56, "licensed", 1.0, GIB, 0.0, (("license", 2.0),)))
    need = need_of(Requirement(), {"license": 1})
    assert {"cpus": 1.0, "custom.license": 1} == need
    assert fits_together(need, {"custom.license": 1}, licensed)
    assert not fits_together(need, {"custom.license": 2}, licensed)
    assert not fits_together(need, {}, NODES)
    assert fits_somewhere(need, licensed)
    assert not fits_somewhere({**need, "cpus": 2.0}, licensed)
    assert {"license": 2.0} == largest(licensed).custom


@pytest.mark.parametrize(
    ("need", "taken", "fits"),
    [
        ({"cpus": 1.0}, {}, True),
        ({"cpus": 1.0}, {"cpus": 5.0}, True),
        ({"cpus": 1.0}, {"cpus": 5.5}, False),
        ({"cpus": 1.0, "memory_bytes": GIB}, {"memory_bytes": 6 * GIB}, False),
        ({"cpus": 1.0, "gpus": 0}, {"gpus": 1}, True),
        ({"cpus": 0.1}, {"cpus": 5.9}, True),
    ],
)
def test_what_is_in_the_cluster_together_is_no_more_than_its_nodes_have(
    need: dict[str, float], taken: dict[str, float], fits: bool
) -> None:
    assert fits == fits_together(need, taken, NODES)


def test_one_node_must_have_all_that_a_job_requests() -> None:
    assert fits_somewhere({"cpus": 4.0, "memory_bytes": 2 * GIB}, NODES)
    assert not fits_somewhere({"cpus": 4.0, "memory_bytes": 4 * GIB}, NODES)
    assert not fits_somewhere({"cpus": 1.0}, ())


def test_a_job_may_request_as_much_as_the_largest_node_has() -> None:
    assert Requirement(4.0, 4 * GIB, None, 1) == largest(NODES).most()
    assert Requirement(0.0, 0, None, 0) == largest(()).most()
