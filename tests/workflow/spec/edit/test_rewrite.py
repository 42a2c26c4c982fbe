from __future__ import annotations

import difflib
import random
from pathlib import Path

import pytest

from jobmeter.errors import UsageError
from jobmeter.model import Requirement
from jobmeter.workflow.plan import load_plan
from jobmeter.workflow.spec.edit.rewrite import rewrite_requirements, write_spec
from tests.workflow.spec.writing import write
from tests.workflow.test_plan import EXAMPLE

GIB = 2**30


def changed_lines(directory: Path, text: str, sizes: dict[str, Requirement], name: str = "spec.yaml") -> list[str]:
    """The lines that are gone, with `-`, and those that are new, with `+`."""
    new = rewrite_requirements(write(directory, text, name), sizes)
    diff = difflib.unified_diff(text.splitlines(), new.splitlines(), n=0, lineterm="")
    return [line for line in diff if not line.startswith(("---", "+++", "@@"))]


def test_only_the_values_of_the_example_change(tmp_path: Path) -> None:
    sizes = {"preprocess_data": Requirement(2, 11 * GIB, 900), "train_model": Requirement(9, 40 * GIB + 1, 3 * 3600)}

    assert changed_lines(tmp_path, EXAMPLE.read_text(), sizes) == [
        '-    resource_requirements: {cpus: 4, memory: "8g", runtime: "PT10M"}',
        '+    resource_requirements: {cpus: 2, memory: "11g", runtime: "PT15M"}',
        "-  - {name: big, num_cpus: 8, memory: 32g, runtime: PT2H}",
        "+  - {name: big, num_cpus: 9, memory: 41g, runtime: PT3H}",
    ]


def test_what_is_none_or_right_already_stays_to_the_letter(tmp_path: Path) -> None:
    sizes = {"preprocess_data": Requirement(4, 8 * GIB, 600.0), "train_model": Requirement()}

    assert changed_lines(tmp_path, EXAMPLE.read_text(), sizes) == []


SHARED = """\
jobs:
- {name: a, command: x, resource_requirements: big}
- {name: b, command: x, resource_requirements: big}
- {name: c, command: x, resource_requirements: big}
resource_requirements:
- name: big
  memory: 8g
"""


def test_what_several_share_becomes_the_largest_of_theirs(tmp_path: Path) -> None:
    sizes = {name: Requirement(memory_bytes=size * GIB) for name, size in (("a", 3), ("b", 5), ("c", 4))}

    assert changed_lines(tmp_path, SHARED, sizes) == ["-  memory: 8g", "+  memory: 5g"]


def test_what_another_job_needs_too_is_not_lowered_without_its_figures(tmp_path: Path) -> None:
    assert changed_lines(tmp_path, SHARED, {"a": Requirement(memory_bytes=3 * GIB)}) == []
    assert changed_lines(tmp_path, SHARED, {"a": Requirement(memory_bytes=9 * GIB)}) == [
        "-  memory: 8g",
        "+  memory: 9g",
    ]


def test_aliases_and_merge_keys_are_shared_too(tmp_path: Path) -> None:
    text = (
        "x-d: &d\n  memory: &m 2g  # base\n  cpus: 1\njobs:\n- {name: a, command: x, resource_requirements: *d}\n"
        "- name: b\n  command: x\n  resource_requirements:\n    <<: *d\n    cpus: 2\n"
        "- {name: c, command: x, resource_requirements: {memory: *m}}\n"
    )
    sizes = {"a": Requirement(1, 3 * GIB), "b": Requirement(4, 5 * GIB), "c": Requirement(None, 4 * GIB)}

    assert changed_lines(tmp_path, text, sizes) == [
        "-  memory: &m 2g  # base",
        "+  memory: &m 5g  # base",
        "-    cpus: 2",
        "+    cpus: 4",
    ]


def test_a_missing_key_is_added_in_the_style_around(tmp_path: Path) -> None:
    text = (
        "jobs:\n  - name: a  # first\n    command: x\n    resource_requirements:  # why\n      # so many\n"
        "      num_cpus: 1  # one\n      # the end\n  - name: b\n    command: |\n      long\n\n"
        "  - {name: c, command: x, resource_requirements: {cpus: 1}}\n  - {name: d, command: x}\n"
    )

    assert changed_lines(tmp_path, text, {name: Requirement(1, GIB) for name in "abcd"}) == [
        "+      memory: 1g",
        "+    resource_requirements:",
        "+      num_cpus: 1",
        "+      memory: 1g",
        "-  - {name: c, command: x, resource_requirements: {cpus: 1}}",
        "-  - {name: d, command: x}",
        "+  - {name: c, command: x, resource_requirements: {cpus: 1, memory: 1g}}",
        "+  - {name: d, command: x, resource_requirements: {num_cpus: 1, memory: 1g}}",
    ]


def test_a_key_without_a_value_gets_one(tmp_path: Path) -> None:
    text = (
        "jobs:\n- name: a\n  command: x\n  resource_requirements:  # none yet\n"
        "- {name: b, command: x, resource_requirements: {memory: , cpus: ~}}\n"
    )

    assert changed_lines(tmp_path, text, {name: Requirement(1, GIB) for name in "ab"}) == [
        "-  resource_requirements:  # none yet",
        "-- {name: b, command: x, resource_requirements: {memory: , cpus: ~}}",
        "+  resource_requirements: {cpus: 1, memory: 1g}  # none yet",
        "+- {name: b, command: x, resource_requirements: {memory: 1g , cpus: 1}}",
    ]


def test_json_keeps_its_tabs_and_gets_lines_of_its_own(tmp_path: Path) -> None:
    text = (
        '{\n\t"jobs": [\n\t\t{\n\t\t\t"name": "\\ud83d\\ude00",\n\t\t\t"command": "a\\/b"\n\t\t},\n'
        '\t\t{"name": "b", "command": "x", "resource_requirements": {"cpus": 1, "memory": 1024}}\n\t]\n}\n'
    )

    assert changed_lines(tmp_path, text, {"😀": Requirement(2), "b": Requirement(1.5, 2000)}, "spec.json") == [
        '-\t\t\t"command": "a\\/b"',
        '+\t\t\t"command": "a\\/b",',
        '+\t\t\t"resource_requirements": {"cpus": 2}',
        '-\t\t{"name": "b", "command": "x", "resource_requirements": {"cpus": 1, "memory": 1024}}',
        '+\t\t{"name": "b", "command": "x", "resource_requirements": {"cpus": 1.5, "memory": 2000}}',
    ]


def test_toml_keeps_its_comments_and_quotes(tmp_path: Path) -> None:
    text = (
        '# top\n[[jobs]]\nname = "a" # n\ncommand = "x"\nresource_requirements = {cpus = 1, memory = \'2g\'} # r\n\n'
        '[[jobs]]\nname = "b"\ncommand = "x"\n[jobs.resource_requirements]\nmemory = 4096 # bytes\n\n'
        '[[jobs]]\nname = "c"\ncommand = "x"\nresource_requirements = "big"\n\n'
        '[[jobs]]\nname = "d"\ncommand = "x"\n\n[[resource_requirements]]\nname = "big"\nnum_cpus = 2 # two\n'
    )

    assert changed_lines(tmp_path, text, {name: Requirement(3, 5 * GIB) for name in "abcd"}, "spec.toml") == [
        "-resource_requirements = {cpus = 1, memory = '2g'} # r",
        "+resource_requirements = {cpus = 3, memory = '5g'} # r",
        "-memory = 4096 # bytes",
        "+memory = 5368709120 # bytes",
        "+cpus = 3",
        "+resource_requirements = {cpus = 3, memory = '5g'}",
        "-num_cpus = 2 # two",
        "+num_cpus = 3 # two",
        "+memory = '5g'",
    ]


def test_toml_tables_without_keys_and_with_dots_get_theirs(tmp_path: Path) -> None:
    text = (
        '[[jobs]]\nname = "a"\ncommand = "x"\n[jobs.resource_requirements]\n# nothing yet\n\n'
        '[[jobs]]\nname = "b"\ncommand = "x"\n\n[jobs.env]\nA = "1"\n'
    )

    assert changed_lines(tmp_path, text, {name: Requirement(2) for name in "ab"}, "spec.toml") == [
        "+cpus = 2",
        "+resource_requirements = {cpus = 2}",
    ]


def test_json5_keeps_its_comments_and_quotes(tmp_path: Path) -> None:
    text = (
        "{\n  // top\n  jobs: [\n    {\n      name: 'a', // first\n      command: 'x', /* why */\n    },\n"
        "    {name: 'b', command: 'x', resource_requirements: {cpus: 1, 'memory': '2g',}}, // second\n  ],\n}\n"
    )

    assert changed_lines(tmp_path, text, {name: Requirement(3, 5 * GIB) for name in "ab"}, "spec.json5") == [
        "-      command: 'x', /* why */",
        "+      command: 'x', resource_requirements: {cpus: 3, memory: '5g'}, /* why */",
        "-    {name: 'b', command: 'x', resource_requirements: {cpus: 1, 'memory': '2g',}}, // second",
        "+    {name: 'b', command: 'x', resource_requirements: {cpus: 3, 'memory': '5g',}}, // second",
    ]


def test_kdl_keeps_its_comments_and_layout(tmp_path: Path) -> None:
    text = (
        '// top\njob "a" {\n    command "x" // run\n    resource_requirements "big"\n}\n'
        'job "b" { command "x" }\njob "c" command="x"\n'
        'job "d" {\n\tcommand "x"\n\tresource_requirements { cpus 1; memory r"2g" } // inline\n}\n'
        'resource_requirements "big" num_cpus=2 /* two */ {\n    // more\n}\n'
        'resource_requirements "other" memory="1g"\njob "e" {\n    command "x"\n    resource_requirements "other"\n}\n'
    )

    assert changed_lines(tmp_path, text, {name: Requirement(3, 5 * GIB) for name in "abcde"}, "spec.kdl") == [
        '-job "b" { command "x" }',
        '-job "c" command="x"',
        '+job "b" { command "x"; resource_requirements { num_cpus 3; memory "5g" } }',
        '+job "c" command="x" { resource_requirements { num_cpus 3; memory "5g" } }',
        '-\tresource_requirements { cpus 1; memory r"2g" } // inline',
        '+\tresource_requirements { cpus 3; memory "5g" } // inline',
        '-resource_requirements "big" num_cpus=2 /* two */ {',
        '+resource_requirements "big" num_cpus=3 /* two */ {',
        '+    memory "5g"',
        '-resource_requirements "other" memory="1g"',
        '+resource_requirements "other" memory="5g" { num_cpus 3 }',
    ]


def test_a_step_that_the_spec_does_not_have_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no job 'aa'\. Did you mean 'a'\?"):
        rewrite_requirements(write(tmp_path, SHARED), {"aa": Requirement(1)})


def test_a_spec_is_written_whole_with_its_mode_and_through_its_link(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(b"old")
    path.chmod(0o640)
    (tmp_path / "link.yaml").symlink_to("spec.yaml")

    write_spec(str(tmp_path / "link.yaml"), "é\r\n")

    assert path.read_bytes() == "é\r\n".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.yaml").is_symlink()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.yaml", "spec.yaml"]


def test_a_spec_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        write_spec(str(tmp_path / "none" / "spec.yaml"), "x")


REQUIREMENTS = (
    "resource_requirements: {cpus: 4, memory: 8g, runtime: PT1H}",
    "resource_requirements: { cpus : 4 , memory: '8 GiB' , } # all",
    'resource_requirements:\n{i}  # above\n{i}  cpus: 4 # beside\n\n{i}  memory: "512m"\n{i}  # below',
    "resource_requirements:\n{i}    runtime: 01:30:00\n{i}    num_cpus:   2",
    "resource_requirements: {\n{i}  cpus: 4, # four\n{i}  memory: 8g # eight\n{i}  }",
    "resource_requirements: {\n{i}  runtime: 90m,\n{i}  memory: !!str 8g,\n{i}}",
    "resource_requirements: &r{n} {memory: &m{n} 100m, cpus: 1}",
    "resource_requirements: shared",
    "resource_requirements: *base",
    "resource_requirements: {<<: *base, cpus: 2}",
    "resource_requirements:\n{i}  <<: *base\n{i}  memory: *mem",
    "resource_requirements: {}",
    "resource_requirements:",
    "resource_requirements: ~  # nothing",
    "resource_requirements: {memory: , runtime: 10s}",
    "resource_requirements:\n{i}  memory: >-\n{i}    8g\n{i}  cpus: 1",
    '"resource_requirements": {"cpus": 1, "memory": 4096}',
    "labels: {ü: ✓}  # no requirement at all",
    "env:\n{i}  A: |\n{i}    text\n\n",
)


def random_spec(chance: random.Random) -> tuple[str, list[str]]:
    """A spec of several jobs, each laid out in another way, with comments, blank lines and any line ends."""
    lines = ["# début ✓", "x-base: &base", "  cpus: 1   # one", "  memory: &mem 2GiB", "jobs:"]
    names = []
    for number in range(chance.randint(1, 6)):
        indentation = "  "
        name = chance.choice(["j{n}", "'j{n}'", '"j{n}"', "é{n}"]).format(n=number)
        names.append(name.strip("'\""))
        fields = [
            chance.choice(["command: x", "command: |\n{i}  x\n{i}  y", "command: >\n{i}  x", "command: [x, y] # c"])
        ]
        fields.append(chance.choice(REQUIREMENTS))
        chance.shuffle(fields)
        fields.insert(chance.randint(0, 2), f"name: {name}")
        block = f"\n{indentation}".join(fields).replace("{i}", indentation).replace("{n}", str(number))
        lines += [f"- {block}", chance.choice(["", "# between", "  # within", "  # within\n\n"])]
    lines += ["resource_requirements:", "- name: shared", "  memory: 1g # here", "- {name: other, cpus: 1}"]
    text = "\n".join(lines) + chance.choice(["", "\n", "\n\n# fin"])
    return text.replace("\n", chance.choice(["\n", "\r\n"])), names


def comments_of(text: str) -> list[str]:
    return sorted(line.partition("#")[2] for line in text.splitlines() if "#" in line)


def test_whatever_the_layout_the_new_text_requests_enough_and_keeps_every_comment(tmp_path: Path) -> None:
    for seed in range(300):
        chance = random.Random(seed)
        text, names = random_spec(chance)
        sizes = {
            name: Requirement(
                cpus=chance.choice([None, 1, 3.5, 12]),
                memory_bytes=chance.choice([None, 5000, 300 * 2**20, 7 * GIB + 1]),
                runtime_seconds=chance.choice([None, 0.5, 100.0, 5000]),
            )
            for name in names
            if chance.random() < 0.8
        }
        path = write(tmp_path, text)

        new = rewrite_requirements(path, sizes)
        write_spec(path, new)

        for job in load_plan(path).jobs:
            for requested, size in zip(job.requirement, sizes.get(job.name, Requirement())):
                assert size is None or (requested is not None and requested >= size), (seed, job.name)
        assert comments_of(text) == comments_of(new), seed
        assert ("\r\n" in new) == ("\r\n" in text)
        assert new.count("\n") == new.count("\r\n") or "\r\n" not in text
        assert rewrite_requirements(path, sizes) == new  # what is right is left alone
