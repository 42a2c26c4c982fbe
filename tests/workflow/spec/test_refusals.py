"""Every wrong spec gives one line: the file, the line, the field, what is wrong, and what was probably meant."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from jobmeter.errors import UsageError
from jobmeter.workflow.plan import load_plan
from tests.workflow.spec.writing import plan_of, refusal_of, refusals_of

OK = "jobs:\n- {name: a, command: x}\n"
HANDLER = "failure_handlers:\n- name: h\n  rules: [{exit_codes: 1, recovery_script: %s}]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "spec.yaml: the spec is empty. It needs at least `jobs`."),
        ("# nothing\n", "spec.yaml: the spec is empty. It needs at least `jobs`."),
        ("jobs: []\n", "spec.yaml:1:1: jobs: there are no jobs"),
        ("name: x\n", "spec.yaml:1:1: jobs: is missing"),
        ("- a\n", "spec.yaml:1:1: a spec is a mapping with `jobs`, and here is a list"),
        ("jobs: {a: b}\n", "spec.yaml:1:1: jobs: must be a list, and here is a mapping"),
        (
            "jobs:\n- {name: a, command: x}\n- name: b\n  command: x\n  resource_requirements: bgi\n"
            "resource_requirements:\n- {name: big}\n",
            "spec.yaml:5:3: jobs[1].resource_requirements: there is no requirement 'bgi'. Did you mean 'big'?",
        ),
        (
            "jobs:\n- name: a\n  command: x\n  resource_requirements:\n    memory: 8gigs\n",
            "spec.yaml:5:5: jobs[0].resource_requirements.memory: '8gigs' is not an amount of memory. "
            "Write for example 512m, 8g or 1.5GiB.",
        ),
        (
            "jobs:\n- name: a\n  comand: x\n",
            "spec.yaml:3:3: jobs[0].comand: there is no field 'comand'. Did you mean 'command'?",
        ),
        (
            "jobs:\n- name: a\n  command: x\n  cpus: 2\n",
            "spec.yaml:4:3: jobs[0].cpus: there is no field 'cpus'. Write it as `resource_requirements: {cpus: …}`.",
        ),
        (OK + "- {name: a, command: y}\n", "spec.yaml:3:4: jobs[1].name: there is another job 'a' in line 2"),
        (
            OK + "- {name: train, command: y}\n- name: b\n  command: y\n  blocked_by:\n  - a\n  - trian\n",
            "spec.yaml:8:5: jobs[2].blocked_by[1]: there is no job 'trian'. Did you mean 'train'?",
        ),
        (
            OK + "- {name: b, command: y, depends_on: zz_*}\n",
            "spec.yaml:3:25: jobs[1].depends_on: no job's name matches 'zz_*'. There are: a, b.",
        ),
        (
            "jobs:\n- {name: a, command: x, blocked_by: b}\n- {name: b, command: x, blocked_by: a}\n",
            "spec.yaml:2:25: jobs[0].blocked_by: these jobs wait for each other: a → b → a",
        ),
        (
            "jobs:\n- {name: a, command: x, inputs: f, outputs: f}\n",
            "spec.yaml:2:3: jobs[0].blocked_by: these jobs wait for each other: a → a",
        ),
        ("jobs:\n- {name: [a], command: x}\n", "spec.yaml:2:4: jobs[0].name: must be a text, and here is a list"),
        ("jobs:\n- name: a\n  command: x\n  name: b\n", "spec.yaml:4:3: the key 'name' is written twice"),
        (
            "jobs:\n- {name: a, command: x, resource_requirements: {cpus: 0}}\n",
            "spec.yaml:2:49: jobs[0].resource_requirements.cpus: '0' is not a number above 0",
        ),
        (
            "jobs:\n- {name: a, command: x, resource_requirements: {num_cpus: -1}}\n",
            "spec.yaml:2:49: jobs[0].resource_requirements.num_cpus: '-1' is not a number above 0",
        ),
        (
            "jobs:\n- {name: a, command: x, resource_requirements: {cpus: 1, num_cpus: 1}}\n",
            "spec.yaml:2:25: jobs[0].resource_requirements: cpus and num_cpus are the same: keep one of them",
        ),
        (
            "jobs:\n- {name: a, command: x, blocked_by: [], depends_on: []}\n",
            "spec.yaml:2:3: jobs[0]: blocked_by and depends_on are the same: keep one of them",
        ),
        (
            "resource_monitor: {granularity: timeseries}\n" + OK,
            "spec.yaml:1:20: resource_monitor.granularity: 'timeseries' is not one of 'summary', 'time_series'",
        ),
        ("enforce: maybe\n" + OK, "spec.yaml:1:1: enforce: 'maybe' is neither true nor false"),
        (
            "jobs:\n- {name: a, command: x, retry: {on: [oops]}}\n",
            "spec.yaml:2:38: jobs[0].retry.on[0]: 'oops' is neither oom nor timeout nor an exit code from 1 to 255",
        ),
        (
            OK + "resource_requirements:\n- {name: r}\n- {name: r}\n",
            "spec.yaml:5:4: resource_requirements[1].name: there is another requirement 'r'",
        ),
        ("jobs:\n- {name: a, command: ''}\n", "spec.yaml:2:13: jobs[0].command: the command is empty"),
        (
            "jobs:\n- {name: a, command: '\"x', shell: false}\n",
            "spec.yaml:2:13: jobs[0].command: '\"x' cannot be split into words: No closing quotation",
        ),
        (
            HANDLER % "''" + OK,
            "spec.yaml:3:27: failure_handlers[0].rules[0].recovery_script: the script is empty",
        ),
        (
            HANDLER % '" \\n"' + OK,
            "spec.yaml:3:27: failure_handlers[0].rules[0].recovery_script: the script is empty",
        ),
        (
            HANDLER % '"a\\0b"' + OK,
            "spec.yaml:3:27: failure_handlers[0].rules[0].recovery_script: has a NUL character",
        ),
        (
            "jobs:\n- {name: a, command: x, env: {'A=B': 1}}\n",
            "spec.yaml:2:31: jobs[0].env['A=B']: 'A=B' cannot be the name of a variable",
        ),
        (OK + "---\n" + OK, "spec.yaml:3:1: a second document begins here. Write each spec into a file of its own."),
        ("jobs: *x\n", "spec.yaml:1:7: there is no &x before this *x"),
        (
            "jobs: !!python/name:os.system\n",
            "spec.yaml:1:7: the tag 'tag:yaml.org,2002:python/name:os.system' is not supported",
        ),
        ("? [a]\n: b\n", "spec.yaml:1:3: a key must be a word"),
        ("<<: 3\n" + OK, "spec.yaml:1:1: only mappings can be merged by '<<'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert refusal_of(tmp_path, text).startswith(message)


def test_every_problem_is_a_line_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        "jobs:\n- name: a\n  command: x\n  priority: high\n  shel: x\n  resource_requirements: {cpus: x, memory: y}\n"
    )

    lines = refusals_of(tmp_path, text)
    assert [
        "spec.yaml:4:3: jobs[0].priority: 'high' is not a whole number",
        "spec.yaml:5:3: jobs[0].shel: there is no field 'shel'. Did you mean 'shell'?",
        "spec.yaml:6:27: jobs[0].resource_requirements.cpus: 'x' is not a number above 0",
        "spec.yaml:6:36: jobs[0].resource_requirements.memory: 'y' is not an amount of memory. "
        "Write for example 512m, 8g or 1.5GiB.",
    ] == lines


def test_a_mistake_in_a_sweep_counts_once(tmp_path: Path) -> None:
    text = "jobs:\n- {name: 'a{i}', command: x, parameters: {i: '1:500'}, blocked_by: 'b{i}'}\n"

    assert len(refusals_of(tmp_path, text)) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a/b", "'a/b' has a slash, and files are named after the job"),
        ('"a\\0b"', "'a\\x00b' has a control character"),
        ('"a\\tb"', "'a\\tb' has a control character"),
        (".", "'.' cannot be a name"),
        ("..", "'..' cannot be a name"),
        ("x" * 236, "is longer than 235 bytes"),
        ("é" * 118, "is longer than 235 bytes"),
        ('" "', "the name is empty"),
    ],
)
def test_a_name_that_cannot_name_a_file_is_refused(tmp_path: Path, name: str, message: str) -> None:
    assert message in refusal_of(tmp_path, f"jobs:\n- name: {name}\n  command: x\n")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.json", '{\n "jobs": [\n}\n', "s.json:3:1: this is not JSON: "),
        ("s.json", "", "s.json: the spec is empty"),
        ("s.json", '{"jobs": NaN}', "s.json: this is not JSON: NaN"),
        ("s.json", '{"jobs": [],\n"jobs": []}', "s.json:2:1: the key 'jobs' is written twice"),
        ("s.json", '{"a": ' * 100_000, "s.json: it is nested deeper than 60 levels"),
        ("s.json", "[" * 70 + "]" * 70, "s.json:1:61: it is nested deeper than 60 levels"),
        ("s.json", '{"jobs": [\n{"name": "a"}]}', "s.json:2:1: jobs[0].command: is missing"),
        ("s.toml", "a = 1\nb = = 2\n", "s.toml:2:5: this is not TOML: "),
        ("s.toml", "jobs = [\n", "s.toml:"),
        ("s.toml", "a = " + "[" * 5000, "s.toml: it is nested deeper than 60 levels"),
        (
            "s.toml",
            '[[jobs]]\nname = "a"\ncommand = "x"\n\n[[jobs]]\nname = "b"\ncommand = "x"\npriority = "x"\n',
            "s.toml:8:1: jobs[1].priority: 'x' is not a whole number",
        ),
        ("s.txt", OK, "s.txt: the file of a spec ends in .yaml, .yml, .json, .json5, .toml or .kdl"),
        ("s.yaml", b"name: a\ndescription: caf\xe9\n", "s.yaml:2:17: is not UTF-8 text"),
        ("s.yaml", "name: 'a\n", "s.yaml:2:1: this is not YAML: "),
        ("s.yaml", "name: a\nuser: \x01\n", "s.yaml:2:7: this is not YAML: U+0001 is not allowed in it"),
        ("s.yaml", "name: a\n\tuser: b\n", "s.yaml:2:1: this is not YAML: "),
    ],
)
def test_a_text_that_is_none_of_its_format_is_refused(
    tmp_path: Path, name: str, text: str | bytes, message: str
) -> None:
    assert refusal_of(tmp_path, text, name).startswith(message)


def test_a_file_that_is_missing_or_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").mkdir()

    with pytest.raises(UsageError, match=r"none\.yaml: No such file or directory"):
        load_plan(str(tmp_path / "none.yaml"))
    with pytest.raises(UsageError, match=r"d\.yaml: is a directory, not the file of a spec"):
        load_plan(str(tmp_path / "d.yaml"))
    with pytest.raises(UsageError, match="null byte"):
        load_plan("a\0b.yaml")


def bomb(levels: int, width: int) -> str:
    lines = ["x-0: &a0 [x]"]
    for level in range(1, levels):
        lines.append(f"x-{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join(lines) + "\n" + OK


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb(10, 10), "its aliases repeat over 1,000,000 values"),
        (bomb(55, 2), "its aliases repeat over 1,000,000 values"),
        (bomb(5000, 1), "it is nested deeper than 60 levels"),
        ("[" * 3000, "it is nested deeper than 60 levels"),
        ("".join(" " * depth + "a:\n" for depth in range(500)), "it is nested deeper than 60 levels"),
        ("jobs: &a [*a]\n", "*a refers to a value that contains it"),
        ("x-a: &a {<<: *a}\n", "*a refers to a value that contains it"),
    ],
)
def test_a_bomb_is_refused_at_once(tmp_path: Path, text: str, message: str) -> None:
    began = time.process_time()
    assert message in refusal_of(tmp_path, text)
    assert time.process_time() - began < 5


def test_aliases_that_repeat_little_are_no_bomb(tmp_path: Path) -> None:
    assert len(plan_of(tmp_path, bomb(4, 10)).jobs) == 1
