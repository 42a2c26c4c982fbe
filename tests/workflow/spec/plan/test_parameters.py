from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.workflow.spec.plan.parameters import Filler, combinations, parameter_values
from tests.workflow.spec.writing import plan_of, refusal_of


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1:4", ["1", "2", "3", "4"]),
        ("0:100:50", ["0", "50", "100"]),
        ("0:99:50", ["0", "50"]),
        ("5:1:-2", ["5", "3", "1"]),
        ("-1:1", ["-1", "0", "1"]),
        ("0.1:0.5:0.1", ["0.1", "0.2", "0.3", "0.4", "0.5"]),
        ("1:1", ["1"]),
        ("[a, b]", ["a", "b"]),
        ("['x y',\"z\"]", ["x y", "z"]),
        ("abc", ["abc"]),
        (["1", "b", "1:3"], ["1", "b", "1:3"]),
    ],
)
def test_lists_ranges_and_steps_are_read(written: str | list[str], expected: list[str]) -> None:
    assert expected == parameter_values("i", written)


def test_a_hundred_tenths_are_ten() -> None:
    assert parameter_values("i", "0:10:0.1")[-1] == "10.0"


def test_product_changes_the_last_parameter_fastest_and_zip_goes_side_by_side() -> None:
    lists = {"a": ["1", "2"], "b": ["x", "y"]}

    assert [{**row} for row in combinations(lists, "product")][1] == {"a": "1", "b": "y"}
    assert list(combinations(lists, "zip")) == [{"a": "1", "b": "x"}, {"a": "2", "b": "y"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{i}", "7"),
        ("{i:03d}", "007"),
        ("{i:.2f}", "7.00"),
        ("{i:>3}|{name:>3}", "  7|  n"),
        ("{i}{i:02d}-{name}", "707-n"),
        (
            "awk '{print $1}' ${HOME} ${i} {other} {} {i!r} { i }",
            "awk '{print $1}' ${HOME} ${i} {other} {} {i!r} { i }",
        ),
        ("{{i}}", "{7}"),
        ("{name:s}", "n"),
    ],
)
def test_only_the_parameters_are_filled_in(text: str, expected: str) -> None:
    assert expected == Filler(["i", "name"]).fill(text, {"i": "7", "name": "n"})


def test_a_sweep_fills_every_text_of_its_job(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        """
jobs:
  - {name: "prepare_{i}", command: x, parameters: {i: "1:2"}}
  - name: "train_{i:03d}_{lr}"
    command: "./train --seed {i} | tee {lr}.log"
    parameters: {i: "1:2", lr: [0.10, 1e-3]}
    blocked_by: ["prepare_{i}"]
    inputs: ["in/{i}.csv"]
    outputs: ["out/{i}_{lr}.pkl"]
    env: {SEED: "{i}"}
    cwd: "run{i}"
    labels: {group: "g{i}"}
    container: {image: "img:{i}", env: {LR: "{lr}"}}
""",
    )

    job = plan.jobs[-1]
    assert job.name == "train_002_1e-3"
    assert job.step == "train_{i:03d}_{lr}"
    assert job.script == "./train --seed 2 | tee 1e-3.log"
    assert job.blocked_by == (2,)
    assert job.inputs == (f"{tmp_path}/run2/in/2.csv",)
    assert job.outputs == (f"{tmp_path}/run2/out/2_1e-3.pkl",)
    assert job.environment == {"SEED": "2"}
    assert job.labels == {"i": "2", "lr": "1e-3", "group": "g2"}
    assert job.container == {"image": "img:2", "env": {"LR": "1e-3"}}
    assert [other.name for other in plan.jobs[2:4]] == ["train_001_0.10", "train_001_1e-3"]


def sweep(name: str, parameters: str, more: str = "") -> str:
    return f'jobs:\n- name: "{name}"\n  command: x {{j}}\n  parameters: {parameters}\n{more}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            sweep("a", "{i: '1:3'}").replace("{j}", "{i}"),
            "2:3: jobs[0].name: several jobs of this sweep would be named 'a': put {i} into the name",
        ),
        (sweep("a{i}", "{i: '1:3', j: [1, 2]}"), "would be named 'a1': put {j} into the name"),
        (sweep("a", "{i: [1, 2], j: [1, 2]}"), "put {i} and {j} into the name"),
        (sweep("a{i}", "{i: [1, 1]}"), "would be named 'a1': its parameters have a value twice"),
        (sweep("a{i:03d}", "{i: [x]}"), "2:3: jobs[0].name: {i:03d} cannot be written for the value 'x'"),
        (sweep("a{i:9q}", "{i: [1]}"), "{i:9q} cannot be written for the value '1'"),
        (sweep("a{i:99999999d}", "{i: [1]}"), "{i:99999999d} is wider than any name may be"),
        (sweep("a{i}", "{i: '1:3:0'}"), "4:16: jobs[0].parameters.i: '1:3:0' has a step of 0"),
        (sweep("a{i}", "{i: '3:1'}"), "'3:1' is an empty range"),
        (sweep("a{i}", "{i: []}"), "jobs[0].parameters.i: has no values"),
        (sweep("a{i}", "{i: [[1]]}"), "jobs[0].parameters.i[0]: must be a text, and here is a list"),
        (sweep("a{i}", "{i-j: 1}"), "'i-j' cannot be the name of a parameter"),
        (sweep("a{i}", "{i: '1:9000000'}"), "this makes 9,000,000 jobs, and 1,000,000 is the maximum"),
        (sweep("a{i}", "{i: '1:2000', j: '1:2000'}"), "this makes 4,000,000 jobs, and 1,000,000 is the maximum"),
        (
            sweep("a{i}", "{i: [1, 2], j: [1]}", "  parameter_mode: zip\n"),
            "with parameter_mode zip all need the same number of values: i has 2, j has 1",
        ),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal_of(tmp_path, text)
