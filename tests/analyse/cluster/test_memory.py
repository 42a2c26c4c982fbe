from __future__ import annotations

from collections.abc import Sequence

import pytest

from jobmeter.analyse.cluster.finding import ClusterFinding
from jobmeter.analyse.cluster.findings import cluster_findings
from jobmeter.analyse.cluster.model import History
from tests.analyse.cluster.histories import GIB, history, values


def findings_of(of: History) -> dict[str, ClusterFinding]:
    return {each.kind: each for each in cluster_findings(of)}


def memory(levels: Sequence[float], *, interval: float = 10.0) -> History:
    """A node whose CPUs are half busy, with so many GiB in use."""
    return history(*({"n": values(reserved=2.0, used=2.0, memory=each)} for each in levels), interval=interval)


def test_a_node_that_is_nearly_full_for_long_is_memory_bound_with_what_to_add() -> None:
    finding = findings_of(memory([15.0] * 10))["memory_bound"]
    assert ("node n", 90.0, "15 GiB of 16 GiB were in use") == (finding.subject, finding.seconds, finding.seen)
    assert "add 2.27 GiB of memory to it, or run fewer tasks there at a time" == finding.action
    assert 15.0 / (16.0 + finding.amounts["add_memory_bytes"] / GIB) < 0.9


def test_one_sample_that_is_full_is_no_finding() -> None:
    assert {} == findings_of(memory([8.0] * 5 + [15.9] + [8.0] * 5))


def test_the_largest_task_is_named() -> None:
    samples = [{"n": values(reserved=2.0, used=2.0, memory=15.5)}] * 10
    tasks = [{"small": {"used_memory_bytes": 1.0}, "large": {"used_memory_bytes": 9.0}}] * 10
    assert findings_of(history(*samples, tasks=tasks))["memory_bound"].action.endswith(", `large` first")


def test_memory_that_only_climbs_is_found_with_the_time_until_it_is_full() -> None:
    finding = findings_of(memory([4.0 + 0.1 * at for at in range(21)]))["memory_growth"]
    assert ("node n", 200.0, "problem") == (finding.subject, finding.seconds, finding.severity)
    assert "memory climbed by 2 GiB to 6 GiB and never fell by more than 10 % of that" == finding.seen
    assert 1000.0 == pytest.approx(finding.amounts["seconds_to_full"], rel=0.01)  # 10 GiB at 10 MiB a second
    assert "else it is full in 16m 40s" == finding.effect


@pytest.mark.parametrize(
    "newest",
    [
        pytest.param([5.9], id="a little lower"),
        pytest.param([5.95, 5.9, 5.85], id="a little lower, three times"),
        pytest.param([5.9, 5.95, 5.93], id="up and down a little"),
    ],
)
def test_memory_that_climbs_is_found_though_the_newest_samples_are_a_little_lower(newest: list[float]) -> None:
    finding = findings_of(memory([4.0 + 0.1 * at for at in range(21)] + newest))["memory_growth"]
    assert 200.0 + 10.0 * len(newest) == finding.seconds
    assert finding.seen.endswith(" and never fell by more than 10 % of that")


def test_memory_bound_says_when_it_will_be_full() -> None:
    assert "full in" in findings_of(memory([14.5 + 0.05 * at for at in range(15)]))["memory_bound"].seen


@pytest.mark.parametrize(
    "levels",
    [
        pytest.param([4.0 + 2.0 * (at % 5) / 5 for at in range(20)], id="up and down"),
        pytest.param([4.0] * 20, id="flat"),
        pytest.param([4.0] * 15 + [8.0] * 5, id="one step"),
        pytest.param([4.0 + 0.001 * at for at in range(20)], id="hardly anything"),
        pytest.param([9.0 - 0.2 * at for at in range(20)], id="falling"),
        pytest.param([4.0 + 0.1 * at for at in range(21)] + [5.7], id="released at the end"),
    ],
)
def test_other_courses_of_memory_are_no_growth(levels: list[float]) -> None:
    assert "memory_growth" not in findings_of(memory(levels))


def spilled(amounts: Sequence[float]) -> History:
    node = values(reserved=2.0, used=2.0)
    total = {"total_object_store_bytes": 2 * GIB}
    return history(*({"n": {**node, **total, "spilled_bytes": each * GIB}} for each in amounts))


def test_objects_that_went_to_the_disk_are_found_with_the_size_that_would_do() -> None:
    finding = findings_of(spilled([0.0, 0.0, 1.0, 3.0, 0.5]))["spilling"]
    assert ("node n", 20.0) == (finding.subject, finding.seconds)
    assert "at least 3 GiB of objects were written to the disk; the object store has 2 GiB" == finding.seen
    assert {"object_store_bytes": 5 * GIB} == finding.amounts


def test_what_was_on_the_disk_before_is_no_finding() -> None:
    assert {} == findings_of(spilled([3.0] * 10))
