"""A spec in another format is the same plan, and keeps its comments where both formats have them."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from jobmeter.workflow.plan import load_plan
from jobmeter.workflow.spec.convert.conversion import convert_spec
from jobmeter.workflow.spec.read.loading import FORMATS
from tests.workflow.spec.writing import write

KINDS = {"YAML": ".yaml", "JSON": ".json", "JSON5": ".json5", "TOML": ".toml", "KDL": ".kdl"}
SPECS = sorted(Path(__file__).parents[2].glob("newcomer/*")) + sorted(Path(__file__).parents[1].glob("read/same/*"))

COMMENTED = """\
# c1
name: x  # c2
# c3
files:  # c4
  # c5
  - name: f  # c6
    path: f.txt
  - {name: g, path: g.txt}  # c7
jobs:
  # c8
  - name: a
    # c9
    command: |  # c10
      echo one
      echo two
    depends_on: [  # c11
      b,
      # c12
      c,  # c13
    ]
    env:
      A: "1"  # c14
  - {name: b, command: "# none"}  # c15
  - name: c
    command: 'it''s "c"'
    resource_requirements: {cpus: 1, memory: 8g}  # c16
# c17
"""


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_the_plan_stays_the_same(path: Path, kind: str, tmp_path: Path) -> None:
    converted = convert_spec(str(path), kind)
    new = write(tmp_path, converted.text, f"new{KINDS[kind]}")

    moved = load_plan(write(tmp_path, path.read_text(encoding="utf-8"), path.name))
    assert moved._replace(path="", name="") == load_plan(new)._replace(path="", name="")


@pytest.mark.parametrize(("first", "second"), itertools.permutations(["YAML", "JSON5", "TOML", "KDL"], 2))
def test_no_comment_is_lost_on_the_way_through_two_formats(tmp_path: Path, first: str, second: str) -> None:
    path, text = write(tmp_path, COMMENTED), ""
    for kind in (first, second):
        text = convert_spec(path, kind).text
        path = write(tmp_path, text, f"new{KINDS[kind]}")

    comments = re.findall(r"\bc\d+\b", text)
    assert [f"c{number}" for number in range(1, 18)] == sorted(comments, key=lambda word: int(word[1:]))


def test_comments_that_json_cannot_have_are_counted(tmp_path: Path) -> None:
    assert ["17 comments: JSON has none"] == convert_spec(write(tmp_path, COMMENTED), "JSON").losses


def test_comments_stand_where_they_stood(tmp_path: Path) -> None:
    text = "# top\nname: x\njobs:\n  # the first\n  - name: a\n    command: ./run  # quickly\n"

    assert (
        '// top\nname "x"\n// the first\njob "a" {\n    command "./run"  // quickly\n}\n'
        == convert_spec(write(tmp_path, text), "KDL").text
    )
    assert (
        '# top\nname = "x"\n\n# the first\n[[jobs]]\nname = "a"\ncommand = "./run"  # quickly\n'
        == convert_spec(write(tmp_path, text), "TOML").text
    )


def test_anchors_and_merges_are_written_out(tmp_path: Path) -> None:
    text = (
        "x-base: &base {cpus: 1, memory: 1g}\njobs:\n- {name: a, command: x, resource_requirements: *base}\n"
        "- {name: b, command: x, resource_requirements: {<<: *base, cpus: 2}}\n"
    )
    converted = convert_spec(write(tmp_path, text), "TOML").text
    assert 'resource_requirements = {cpus = 2, memory = "1g"}' in converted


def test_texts_that_look_like_something_else_stay_texts(tmp_path: Path) -> None:
    words = [
        "yes",
        "null",
        "1.10",
        "007",
        "1e3",
        "~",
        "a: b",
        "- a",
        "#x",
        "",
        "é\\t",
        "'",
        '"',
        "{a}",
        "*a",
        "0x1F",
        ".",
    ]
    text = (
        "jobs:\n- name: a\n  command: ["
        + ", ".join(f'"{word}"'.replace('"""', '"\\""') for word in ["x", *words])
        + "]\n"
    )
    path = write(tmp_path, text)
    for kind, extension in KINDS.items():
        new = write(tmp_path, convert_spec(path, kind).text, f"new{extension}")
        assert load_plan(path).jobs[0].command == load_plan(new).jobs[0].command, kind


def test_every_format_can_be_written() -> None:
    assert set(KINDS) == set(FORMATS.values())
