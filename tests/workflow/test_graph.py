from __future__ import annotations

from pathlib import Path

from jobmeter.workflow.graph import critical_path, dependants, order, text_graph
from tests.workflow.spec.writing import plan_of

SPEC = """
name: night
jobs:
  - {name: report, command: x, blocked_by: ["train_{i:03d}", check]}
  - {name: load, command: x}
  - {name: "train_{i:03d}", command: x, parameters: {i: "1:100"}, blocked_by: load}
  - {name: check, command: x, blocked_by: load}
"""


def test_the_graph_is_printed_level_by_level_with_each_sweep_as_one(tmp_path: Path) -> None:
    assert text_graph(plan_of(tmp_path, SPEC)) == [
        "night: 103 jobs, 202 dependencies",
        "",
        "level 1",
        "  load",
        "",
        "level 2",
        "  train_{i:03d} × 100  ← load",
        "  check                ← load",
        "",
        "level 3",
        "  report  ← train_{i:03d} × 100, check",
    ]


def test_one_job_alone_is_a_graph(tmp_path: Path) -> None:
    lines = text_graph(plan_of(tmp_path, "jobs: [{name: a, command: x}]"))

    assert lines == ["spec: 1 job, 0 dependencies", "", "level 1", "  a"]


def test_dependants_are_the_edges_the_other_way_round(tmp_path: Path) -> None:
    after = dependants(plan_of(tmp_path, SPEC).jobs)

    assert after[2] == list(range(3, 104))
    assert after[1] == []
    assert after[50] == [1]


def test_each_job_comes_after_what_it_waits_for(tmp_path: Path) -> None:
    numbers = [job.number for job in order(plan_of(tmp_path, SPEC).jobs)]

    assert numbers[0] == 2
    assert numbers[-1] == 1
    assert sorted(numbers) == list(range(1, 104))


def test_the_critical_path_follows_the_seconds(tmp_path: Path) -> None:
    jobs = plan_of(tmp_path, SPEC).jobs

    assert critical_path(jobs, {2: 5.0, 40: 9.0, 103: 8.0, 1: 1.0}) == [2, 40, 1]
    assert critical_path(jobs, {2: 5.0, 103: 20.0, 1: 1.0}) == [2, 103, 1]
    assert critical_path([], {}) == []


def test_a_chain_of_thousands_is_no_trouble(tmp_path: Path) -> None:
    lines = ["- {name: j0, command: x}"] + [
        f"- {{name: j{i}, command: x, blocked_by: j{i - 1}}}" for i in range(1, 2000)
    ]
    jobs = plan_of(tmp_path, "jobs:\n" + "\n".join(lines)).jobs

    assert critical_path(jobs[::-1], dict.fromkeys(range(1, 2001), 1.0)) == list(range(1, 2001))
