from __future__ import annotations

import pytest

from jobmeter.analyse.cluster.cpus import right_size
from jobmeter.analyse.cluster.finding import ClusterFinding
from jobmeter.analyse.cluster.findings import cluster_findings
from jobmeter.analyse.cluster.model import History, Waiting
from jobmeter.analyse.cluster.thresholds import DEFAULT, Thresholds
from tests.analyse.cluster.histories import history, steady, values

SLEEPING = values(reserved=4.0, used=0.02)
BUSY = values(reserved=4.0, used=3.9)


def findings_of(of: History, limits: Thresholds = DEFAULT) -> dict[str, ClusterFinding]:
    return {finding.kind: finding for finding in cluster_findings(of, limits)}


def sleeping(count: int = 10) -> History:
    task = {"train": {"running": 2.0, "used_cpus": 0.8, "waited_cpus": 0.0}}
    return history(*steady(SLEEPING, count), tasks=[task] * count, requests={"train": {"cpus": 2.0}})


def test_tasks_that_sleep_on_reserved_cpus_are_over_reserved_by_name_and_not_cpu_bound() -> None:
    findings = findings_of(sleeping())
    assert {"over_reserved"} == set(findings)
    finding = findings["over_reserved"]
    assert ("task train", 90.0, "hint") == (finding.subject, finding.seconds, finding.severity)
    assert "`train` reserves 2 CPUs and uses 0.4" == finding.seen
    assert "lower num_cpus of `train` to 0.5" == finding.action
    assert "up to 8 could run at a time instead of 2" == finding.effect
    assert {"num_cpus": 0.5, "tasks_at_a_time": 8} == finding.amounts


def test_tasks_that_wait_behind_idle_reservations_make_it_a_problem() -> None:
    of = sleeping()
    of.samples = [each._replace(waiting=(Waiting({"cpus": 2.0}, 3),)) for each in of.samples]
    finding = findings_of(of)["over_reserved"]
    assert "problem" == finding.severity
    assert "`train` reserves 2 CPUs and uses 0.4; 3 tasks waited for CPUs meanwhile" == finding.seen


def test_nothing_is_said_before_the_time_is_over() -> None:
    assert {} == findings_of(sleeping(count=6))
    assert {"over_reserved"} == set(findings_of(sleeping(count=7)))
    assert {"over_reserved"} == set(findings_of(sleeping(count=2), Thresholds(seconds=5.0)))


def test_a_cluster_that_is_busy_is_cpu_bound_after_the_set_time() -> None:
    assert {} == findings_of(history(*steady(BUSY, 6)))
    waiting = [(Waiting({"cpus": 2.0}, 3),)] * 8
    finding = findings_of(history(*steady(BUSY, 8), waiting=waiting))["cpu_bound"]
    assert ("cluster", 70.0) == (finding.subject, finding.seconds)
    assert "3.9 CPUs of 4 CPUs were busy; 3 tasks waited for CPUs" == finding.seen
    assert ("add 6 CPUs", {"add_cpus": 6}) == (finding.action, finding.amounts)
    assert "the 3 tasks that wait would run at once" == finding.effect


def test_one_spike_is_not_cpu_bound_however_high() -> None:
    half = steady(values(reserved=2.0, used=2.0), 10)
    samples = [*half, *steady(BUSY, 1), *half]
    assert {} == findings_of(history(*samples))


def test_tasks_that_wait_for_cpus_which_others_use_are_cpu_bound_and_not_over_reserved() -> None:
    """On a machine that is busy with other things, tasks get little and want much."""
    task = {"train": {"running": 4.0, "used_cpus": 1.0, "waited_cpus": 2.9}}
    starved = values(reserved=4.0, used=1.0, waited=2.9)
    findings = findings_of(history(*steady(starved, 10), tasks=[task] * 10, requests={"train": {"cpus": 1.0}}))
    assert {"cpu_bound"} == set(findings)
    assert "1 CPU of 4 CPUs were busy, and processes waited for 2.9 more" == findings["cpu_bound"].seen


def test_tasks_of_which_it_is_not_known_whether_they_waited_are_not_called_idle() -> None:
    of = sleeping()
    of.samples = [each._replace(tasks={"train": {"running": 2.0, "used_cpus": 0.8}}) for each in of.samples]
    assert {} == findings_of(of)


def test_a_node_of_an_idle_cluster_can_be_cpu_bound() -> None:
    samples = [{"full": BUSY, "idle": values(used=1.5), "idle too": values(used=1.5)} for _ in range(10)]
    assert ["node full"] == [each.subject for each in cluster_findings(history(*samples)) if each.kind == "cpu_bound"]


def test_where_names_are_not_known_the_cluster_is_over_reserved() -> None:
    finding = findings_of(history(*steady(SLEEPING, 10)))["over_reserved"]
    assert ("cluster", "4 CPUs are reserved and 0.02 used") == (finding.subject, finding.seen)
    assert "about 3 CPUs more could be reserved" == finding.effect


def test_where_no_cpu_more_could_be_reserved_no_effect_is_promised() -> None:
    finding = findings_of(history(*steady(values(reserved=1.0, used=0.1, cpus=1.0), 10)))["over_reserved"]
    assert ("lower num_cpus of the running tasks to what they use", "") == (finding.action, finding.effect)


def test_what_is_reserved_and_used_is_no_finding() -> None:
    task = {"train": {"running": 2.0, "used_cpus": 2.4, "waited_cpus": 0.0}}
    fine = values(reserved=4.0, used=2.5)
    assert {} == findings_of(history(*steady(fine, 10), tasks=[task] * 10, requests={"train": {"cpus": 2.0}}))


def test_the_lines_are_options() -> None:
    half = history(*steady(values(reserved=2.0, used=2.0), 10))
    assert {} == findings_of(half)
    assert {"cpu_bound"} == set(findings_of(half, Thresholds(high=0.5)))


def test_what_is_not_known_is_no_finding() -> None:
    unknown = {key: value for key, value in SLEEPING.items() if not key.startswith(("used", "waited"))}
    assert {} == findings_of(history(*steady(unknown, 10)))


@pytest.mark.parametrize(("used", "size"), [(0.0, 0.1), (0.2, 0.25), (0.4, 0.5), (0.8, 1.0), (0.9, 2.0), (2.4, 3.0)])
def test_the_size_to_reserve_is_one_that_ray_takes(used: float, size: float) -> None:
    assert size == right_size(used)
