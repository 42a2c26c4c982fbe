from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.workflow.spec.plan import dependencies
from jobmeter.workflow.spec.plan.dependencies import cycle_text, find_cycle
from tests.workflow.spec.writing import plan_of, refusal_of

SWEEP = """
jobs:
  - {name: "train_{i:02d}", command: x, parameters: {i: "1:3"}}
  - {name: train_extra, command: x}
"""


@pytest.mark.parametrize(
    ("waits_for", "expected"),
    [
        ("train_02", (2,)),
        ("train_*", (1, 2, 3, 4)),
        ("'train_0[13]'", (1, 3)),
        ('"train_{i:02d}"', (1, 2, 3)),
        ("[train_03, train_03, train_*a]", (3, 4)),
        ("'*'", (1, 2, 3, 4)),
    ],
)
def test_names_patterns_and_sweeps_say_what_a_job_waits_for(
    tmp_path: Path, waits_for: str, expected: tuple[int, ...]
) -> None:
    plan = plan_of(tmp_path, f"{SWEEP}  - {{name: last, command: x, blocked_by: {waits_for}}}\n")

    assert plan.jobs[-1].blocked_by == expected


def test_a_job_waits_for_those_that_make_what_it_reads(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        "jobs:\n- {name: c, command: x, inputs: [b.txt, sub/../a.txt, given.txt], depends_on: d}\n"
        "- {name: a, command: x, outputs: ./a.txt}\n- {name: b, command: x, cwd: s, outputs: ../b.txt}\n"
        "- {name: d, command: x}\n",
    )

    assert plan.jobs[0].blocked_by == (2, 3, 4)


def test_two_jobs_may_not_make_the_same_file(tmp_path: Path) -> None:
    text = "jobs:\n- {name: a, command: x, outputs: [o]}\n- {name: b, command: x, outputs: [p, ./o]}\n"

    message = refusal_of(tmp_path, text)
    assert message == f"spec.yaml:3:25: jobs[1].outputs: '{tmp_path}/o' is already an output of job 'a'"


def test_jobs_of_a_sweep_that_wait_for_the_same_share_it(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        f"{SWEEP}  - {{name: 'test_{{k}}', command: x, parameters: {{k: '1:3'}}, blocked_by: train_*}}\n",
    )

    assert plan.jobs[4].blocked_by is plan.jobs[6].blocked_by


def test_sweeps_that_all_wait_for_all_are_refused_before_they_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "MOST_EDGES", 10)
    text = f"{SWEEP}  - {{name: 'test_{{k}}', command: x, parameters: {{k: '1:3'}}, blocked_by: train_*}}\n"

    assert "Put a job between the two sweeps that waits for all of the first." in refusal_of(tmp_path, text)


@pytest.mark.parametrize(
    ("blocked_by", "expected"),
    [
        ([], []),
        ([(), (1,), (1, 2)], []),
        ([(1,)], [1, 1]),
        ([(2,), (1,)], [1, 2, 1]),
        ([(), (1, 4), (2,), (3,), (2,)], [2, 3, 4, 2]),
        ([(2,), ()], []),
        ([(2, 2), ()], []),
    ],
)
def test_a_circle_is_found_each_job_waiting_for_the_one_before_it(
    blocked_by: list[tuple[int, ...]], expected: list[int]
) -> None:
    assert expected == find_cycle(blocked_by)


def test_a_long_circle_is_named_by_its_beginning() -> None:
    assert cycle_text(["a", "b", "c", "a"]) == "a → b → c → a"
    assert cycle_text([f"j{number}" for number in range(1000)]).count("→") == 8


def test_an_action_of_the_whole_workflow_may_name_jobs_and_comes_first_all_the_same(tmp_path: Path) -> None:
    text = (
        "jobs:\n- {name: a, command: x}\n- {name: b, command: x, depends_on: a}\nactions:\n"
        "- {trigger_type: on_workflow_start, action_type: run_commands, commands: y, jobs: [b]}\n"
    )
    assert [(3,), (1,), ()] == [job.blocked_by for job in plan_of(tmp_path, text).jobs]


def test_jobs_of_an_action_that_wait_for_each_other_are_not_held_by_it(tmp_path: Path) -> None:
    text = (
        "jobs:\n- {name: a, command: x}\n- {name: b, command: x, depends_on: a}\nactions:\n"
        "- {trigger_type: on_jobs_ready, action_type: run_commands, commands: y, jobs: [a, b]}\n"
    )
    assert [(), (1, 3), (1,)] == [job.blocked_by for job in plan_of(tmp_path, text).jobs]
