from __future__ import annotations

from jobmeter.analyse.cluster.finding import KINDS, ClusterFinding
from jobmeter.analyse.cluster.findings import _RULES, cluster_findings
from jobmeter.analyse.cluster.model import History, Waiting
from tests.analyse.cluster.histories import history, steady, values

FULL, IDLE = values(reserved=4.0, used=3.9), values(used=0.1)


def findings_of(of: History) -> dict[str, ClusterFinding]:
    return {each.kind: each for each in cluster_findings(of)}


def test_a_lost_node_is_a_problem_at_once_with_what_is_missing() -> None:
    of = history(*steady(values(reserved=2.0, used=2.0), 3, nodes=2))
    of.nodes["n1"] = of.nodes["n1"]._replace(left=15.0, lost="its raylet does not answer")
    finding = findings_of(of)["node_lost"]
    assert ("problem", "node n1", 5.0) == (finding.severity, finding.subject, finding.seconds)
    assert "it was lost 15 s after monitoring began: its raylet does not answer" == finding.seen
    assert "the cluster has 4 CPUs fewer until then" == finding.effect


def test_a_node_that_left_on_request_is_no_finding() -> None:
    of = history(*steady(values(reserved=2.0, used=2.0), 3, nodes=2))
    of.nodes["n1"] = of.nodes["n1"]._replace(left=15.0)
    assert {} == findings_of(of)


def test_one_node_full_while_another_is_idle_for_long_is_skew() -> None:
    of = history(*({"full": FULL, "idle": IDLE} for _ in range(10)))
    finding = findings_of(of)["skew"]
    assert ("node full was full while node idle was idle", 90.0) == (finding.seen, finding.seconds)
    assert "every node would have 50 % of its CPUs busy" == finding.effect


def test_nodes_that_are_full_in_turns_for_a_short_time_are_no_skew() -> None:
    samples = [{"a": FULL if at % 4 == 0 else IDLE, "b": values(used=1.5)} for at in range(20)]
    assert "skew" not in findings_of(history(*samples))


def test_a_cluster_of_which_little_is_used_can_shrink_or_do_more() -> None:
    low = values(reserved=1.0, used=0.8)
    tasks = [{"fit": {"running": 4.0, "used_cpus": 3.2}}] * 10
    finding = findings_of(history(*steady(low, 10, nodes=4), tasks=tasks))["under_used"]
    assert "20 % of the CPUs were used and 25 % reserved" == finding.seen
    assert "shrink to 2 nodes, or raise parallelism to 14" == finding.action
    assert "2 of 4 nodes would be free; about 3.6 times as much would be done at a time" == finding.effect


def test_a_cluster_is_not_shrunk_below_what_its_memory_needs() -> None:
    finding = findings_of(history(*steady(values(reserved=0.1, used=0.1, memory=12.0), 10, nodes=4)))["under_used"]
    assert "start work on it, or stop it" == finding.action


def test_a_queue_is_not_under_used() -> None:
    waiting = [(Waiting({"gpus": 1.0}, 1),)] * 10
    assert {} == findings_of(history(*steady(IDLE, 10), waiting=waiting))


def test_a_short_rest_is_not_under_used() -> None:
    samples = steady(values(reserved=2.0, used=2.0), 20) + steady(IDLE, 10)
    assert {} == findings_of(history(*samples))


def gpus(reserved: float, used: float) -> dict[str, float]:
    return {**values(reserved=2.0, used=2.0), "total_gpus": 4.0, "reserved_gpus": reserved, "used_gpus": used}


def test_gpus_that_are_all_busy_are_the_limit() -> None:
    waiting = [(Waiting({"gpus": 1.0}, 2),)] * 10
    finding = findings_of(history(*steady(gpus(4.0, 3.8), 10), waiting=waiting))["gpu_bound"]
    assert "3.8 of 4 GPUs were busy; 2 more are requested by waiting tasks" == finding.seen
    assert "add 2 GPUs" == finding.action


def test_gpus_that_are_reserved_and_not_used_are_idle() -> None:
    of = history(*steady(gpus(4.0, 0.4), 10), requests={"fit": {"gpus": 1.0}})
    finding = findings_of(of)["idle_gpu"]
    assert "4 GPUs are reserved and 0.4 used" == finding.seen
    assert "lower num_gpus of `fit`: several can share one; 1 GPU would do" == finding.action
    assert "3 GPUs would be free" == finding.effect


def test_gpus_that_nobody_reserved_or_of_which_nothing_is_known_are_no_finding() -> None:
    assert {} == findings_of(history(*steady(gpus(0.0, 0.0), 10)))
    unknown = {key: value for key, value in gpus(4.0, 0.0).items() if key != "used_gpus"}
    assert {} == findings_of(history(*steady(unknown, 10)))


def test_every_kind_has_a_meaning_and_a_rule() -> None:
    assert [rule.__name__ for rule in _RULES if rule.__name__ not in KINDS] == []
    assert len(KINDS) == len(_RULES)


def test_problems_come_first() -> None:
    of = history(*({"full": FULL, "idle": IDLE} for _ in range(10)))
    of.nodes["idle"] = of.nodes["idle"]._replace(left=20.0, lost="gone")
    severities = [each.severity for each in cluster_findings(of)]
    assert sorted(severities, reverse=True) == severities
    assert {"problem", "hint"} == set(severities)
