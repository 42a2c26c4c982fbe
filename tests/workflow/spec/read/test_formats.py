"""The same workflow in five formats is the same plan; errors have their line and column in each of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobmeter.errors import UsageError
from jobmeter.workflow.plan import Plan, load_plan
from jobmeter.workflow.spec.read.loading import read_document
from jobmeter.workflow.spec.read.nodes import find
from tests.workflow.spec.writing import plan_of, refusal_of, refusals_of, write

SAME = Path(__file__).parent / "same"
FORMATS = ("yaml", "json", "json5", "toml", "kdl")


def comparable(plan: Plan) -> Plan:
    return plan._replace(path="")


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_workflow_gives_the_same_plan_in_every_format(kind: str) -> None:
    plan = load_plan(str(SAME / f"sweep.{kind}"))

    assert comparable(load_plan(str(SAME / "sweep.yaml"))) == comparable(plan)
    assert [
        "prepare",
        "train_1_adam",
        "train_1_sgd",
        "train_2_adam",
        "train_2_sgd",
        "report",
        "on_workflow_start_1",
    ] == [job.name for job in plan.jobs]


MISTAKES = {
    "yaml": "name: x\njobs:\n  - name: a\n    command: x\n    priority: high\n"
    "  - name: b\n    comand: x\n    shel: y\n",
    "json": '{"name": "x",\n "jobs": [\n  {"name": "a",\n   "command": "x",\n    "priority": "high"},\n'
    '  {"name": "b",\n    "comand": "x",\n    "shel": "y"}]}\n',
    "json5": "{name: 'x', // c\n jobs: [\n  {name: 'a',\n   command: 'x',\n    priority: 'high'},\n"
    "  {name: 'b',\n    comand: 'x', /* c */\n    shel: 'y',},],}\n",
    "toml": 'name = "x"\n[[jobs]]\nname = "a"\ncommand = "x"\n    priority = "high"\n'
    '[[jobs]]\n    comand = "x"\n    shel = "y"\nname = "b"\n',
    "kdl": 'name "x"\n\njob "a" {\n    command "x"\n    priority "high"\n}\njob "b" { // c\n    comand "x"\n'
    '    shel "y"\n}\n',
}


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("yaml", ["5:5", "7:5", "8:5"]),
        ("json", ["5:5", "7:5", "8:5"]),
        ("json5", ["5:5", "7:5", "8:5"]),
        ("toml", ["5:5", "7:5", "8:5"]),
        ("kdl", ["5:5", "8:5", "9:5"]),
    ],
)
def test_all_errors_are_reported_at_once_with_line_and_column(tmp_path: Path, kind: str, places: list[str]) -> None:
    lines = refusals_of(tmp_path, MISTAKES[kind], f"s.{kind}")

    assert [
        f"s.{kind}:{places[0]}: jobs[0].priority: 'high' is not a whole number",
        f"s.{kind}:{places[1]}: jobs[1].comand: there is no field 'comand'. Did you mean 'command'?",
        f"s.{kind}:{places[2]}: jobs[1].shel: there is no field 'shel'. Did you mean 'shell'?",
    ] == lines


def test_errors_of_the_schema_and_of_the_plan_are_reported_together(tmp_path: Path) -> None:
    text = (
        "jobs:\n- {name: a, command: x, priority: high}\n- {name: b, command: x, depends_on: [aa]}\n"
        "- {name: c, command: x, resource_requirements: big, input_files: [f]}\n- {name: d, command: x}\n"
        "- {name: d, command: x}\nactions:\n- {trigger_type: on_jobs_ready, action_type: run_commands, commands: x, "
        "job_name_regexes: z}\n"
    )

    assert [
        "spec.yaml:2:25: jobs[0].priority: 'high' is not a whole number",
        "spec.yaml:3:25: jobs[1].depends_on: there is no job 'aa'. Did you mean 'a'?",
        "spec.yaml:4:25: jobs[2].resource_requirements: there is no requirement 'big'. There are none.",
        "spec.yaml:6:4: jobs[4].name: there is another job 'd' in line 5",
        "spec.yaml:8:73: actions[0].job_name_regexes[0]: no job's name matches 'z'. There are: a, b, d.",
    ] == refusals_of(tmp_path, text)


def test_what_follows_from_another_mistake_is_not_reported(tmp_path: Path) -> None:
    text = (
        "jobs:\n- {name: 't_{i}', command: x, parameters: {i: '1:3:0'}}\n"
        "- {name: end, command: x, depends_on: [t_1, 't_{i}'], depends_on_regexes: ['^t_']}\n"
    )

    assert "spec.yaml:2:44: jobs[0].parameters.i: '1:3:0' has a step of 0" == refusal_of(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.json5", "{jobs: [\n  {name: 'a' 'b'}]}", "s.json5:2:14: this is not JSON5: Expected comma or '}'"),
        ("s.json5", "{jobs: [\n", "s.json5:1:8: this is not JSON5: Unclosed array"),
        ("s.json5", "// nothing\n", "s.json5: the spec is empty"),
        ("s.json5", "[" * 500, "s.json5: it is nested deeper than 60 levels"),
        ("s.json5", "{jobs: [],\n jobs: []}", "s.json5:2:2: the key 'jobs' is written twice"),
        ("s.kdl", 'job "a" {\n  command "x"\n  priority =\n}\n', "s.kdl:3:3: this is not KDL: "),
        ("s.kdl", 'job "a" {\n', "s.kdl:1:1: this is not KDL: "),
        ("s.kdl", "// nothing\n", "s.kdl: the spec is empty"),
        ("s.kdl", "a {" * 5000, "s.kdl:1:183: it is nested deeper than 60 levels"),
        ("s.kdl", 'job "a" { command "x" }\nname {\n  - 1\n}\n', "s.kdl:2:1: name: must be a text, and here is a list"),
        ("s.toml", "a = 1\nb = = 2\n", "s.toml:2:5: this is not TOML: "),
        ("s.json", '{"jobs": [\n  1,]}', "s.json:2:5: this is not JSON: "),
    ],
)
def test_a_text_that_is_none_of_its_format_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    assert refusal_of(tmp_path, text, name).startswith(message)


def test_json5_numbers_and_texts_mean_what_they_mean_in_javascript(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        "{jobs: [{name: 'a', command: 'echo \\'x\\' \\\n y', priority: +0x10, resource_requirements: {cpus: .5}}]}",
        "s.json5",
    )

    job = plan.jobs[0]
    assert ("echo 'x'  y", 16, 0.5) == (job.script, job.priority, job.requirement.cpus)


def test_kdl_of_both_versions_is_read(tmp_path: Path) -> None:
    one = 'enforce true\njob "a" { command r#"echo "x""#; priority 1_000; }\n'
    two = (
        'enforce #true\njob a {\n  command #"echo "x""#\n  priority 1_000\n  /-priority 3\n}\n/-job "b" { command x }\n'
    )

    plans = [plan_of(tmp_path, text, "s.kdl") for text in (one, two)]
    assert plans[0] == plans[1]
    assert (True, 'echo "x"', 1000) == (plans[0].enforce, plans[0].jobs[0].script, plans[0].jobs[0].priority)


def test_kdl_lines_may_be_continued_and_texts_have_several(tmp_path: Path) -> None:
    text = (
        'job "a" \\ // on\n  command="x" /* /* nested */ */ priority=1\n'
        'job b {\n  command """\n    one\n      two\n    """\n}\n'
    )

    plan = plan_of(tmp_path, text, "s.kdl")
    assert [("a", "x", 1), ("b", "one\n  two", 0)] == [(job.name, job.script, job.priority) for job in plan.jobs]


def test_every_toml_layout_has_its_places(tmp_path: Path) -> None:
    text = (
        'name = \'x\' # c\nslurm_defaults.account = "p"\njobs = [\n  {name = "a", command = "x"}, # one\n'
        '  {name = "b", command = """\nx""", labels = {a.b = "c"}},\n]\n[resource_monitor]\nenabled = false\n'
    )
    path = write(tmp_path, text, "s.toml")
    root = read_document(path).root
    assert root is not None

    assert [(3, 2), (4, 2), (5, 15), (7, 0)] == [
        (find(root, place)[0].start.line, find(root, place)[0].start.column)
        for place in (("jobs", 0), ("jobs", 1), ("jobs", 1, "labels"), ("resource_monitor",))
    ]
    assert json.loads(json.dumps(read_document(path).values))["jobs"][1]["labels"] == {"a": {"b": "c"}}


def test_an_extension_that_is_no_spec_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in \.yaml, \.yml, \.json, \.json5, \.toml or \.kdl"):
        load_plan(write(tmp_path, "", "spec.txt"))
