"""Small values that jobs hand to each other, in workflows that really run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from jobmeter.errors import UsageError
from jobmeter.workflow.plan import UserData
from jobmeter.workflow.user_data import LARGEST, DataDirectory, variable_name
from tests.workflow.live import Place

DATA = f"{sys.executable} -m jobmeter data"

SPEC = f"""
user_data:
- {{name: settings, data: {{rate: 0.5, steps: [1, 2], name: "x"}}}}
- {{name: best model}}
- {{name: scratch, is_ephemeral: true}}
jobs:
- name: use
  command: "cat ${{user_data.input.best model}} > used; echo \\"$JOBMETER_DATA_BEST_MODEL\\" >> used"
- name: find
  command: |
    {DATA} get settings > settings
    {DATA} set 'best model' '{{"lr": 0.1}}'
    echo hello | {DATA} set scratch --text
  input_user_data: settings
  output_user_data: [best model, scratch]
- {{name: look, command: '{DATA} get scratch --text > looked', input_user_data_regexes: ['^scr']}}
"""


def test_jobs_hand_data_to_each_other_by_command_file_and_environment(place: Place) -> None:
    done = place.run(SPEC)

    assert 0 == done.returncode, done.stderr
    assert {"rate": 0.5, "steps": [1, 2], "name": "x"} == json.loads((place.folder / "settings").read_text())
    assert ['{"lr": 0.1}{"lr": 0.1}'] == ["".join(place.lines("used"))]
    assert ["hello"] == place.lines("looked")


def data(place: Place, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "jobmeter", "data", *words, "--store", str(place.store)],
        env=place.environment(), cwd=place.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert code == done.returncode, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_data_are_kept_with_the_run_but_for_those_that_need_not_be(place: Place) -> None:
    assert 0 == place.run(SPEC).returncode

    assert "settings\nbest model\nscratch (no value yet)\n" == data(place, "ls")
    assert '{"lr": 0.1}\n' == data(place, "get", "best model", "--workflow", "spec")
    data(place, "set", "best model", "[1]")
    assert "[1]\n" == data(place, "get", "best model")


def test_ephemeral_data_are_made_again_when_someone_reads_them_again(place: Place) -> None:
    assert 0 == place.run(SPEC).returncode
    assert "use: done\nfind: done\nlook: done\n" == place.call("resume", "--dry-run").stdout

    place.write(SPEC.replace("> looked", "> looked2"))
    assert (
        "use: find runs again\nfind: user data scratch is missing\nlook: find runs again\n"
        == place.call("resume", "--dry-run").stdout
    )
    assert 0 == place.call("resume").returncode
    assert ["hello"] == place.lines("looked2")


def test_a_job_that_does_not_set_its_data_has_failed(place: Place) -> None:
    done = place.run("user_data: [{name: d}]\njobs:\n- {name: a, command: 'true', output_user_data: d}\n")
    assert 1 == done.returncode
    assert "d.json" in done.stderr


def test_another_value_in_the_spec_makes_its_readers_run_again(place: Place) -> None:
    text = (
        f"user_data: [{{name: d, data: 1}}]\njobs:\n- {{name: a, command: '{DATA} get d >> log', input_user_data: d}}\n"
    )
    assert 0 == place.run(text).returncode
    assert "a: done\n" == place.call("resume", "--dry-run").stdout
    place.write(text.replace("data: 1", "data: 2"))
    assert 0 == place.call("resume").returncode
    assert ["1", "2"] == place.lines("log")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("get", "setings"), "there is no user data 'setings' in this workflow. Did you mean 'settings'?"),
        (("get", "scratch"), "user data 'scratch' has no value yet"),
        (("set", "settings", "adam"), "'adam' is not JSON"),
        (("set", "settings", "1", "--text", "--workflow", "other"), "there is no workflow 'other'"),
        (("get",), "name the user data: jobmeter data get DATA"),
        (("get", "settings", "1"), "'1': only `data set` takes a value"),
        (("get", "settings", "--run-id", "x"), "--run-id: 'x' is not a whole number above 0"),
        (("gte", "settings"), "there is no command 'data gte'. Did you mean 'get'?"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(place: Place, words: tuple[str, ...], message: str) -> None:
    assert 0 == place.run(SPEC).returncode
    refusal = data(place, *words, code=2)
    assert message in refusal
    assert 1 == refusal.count("\n")


def test_a_job_that_names_another_run_must_name_its_workflow_too(place: Place) -> None:
    spec = "name: own\nuser_data: [{{name: d}}]\njobs:\n- {{name: a, command: '{}', output_user_data: d}}\n"
    assert 0 == place.run(spec.format(f"{DATA} set d 1")).returncode
    commands = (
        f"{DATA} get d --run-id 1 2> refused; echo $? >> refused",
        f'{DATA} get d --run-id 1 --workflow own --store "{place.store}" > earlier',
        f"{DATA} set d 2",
    )
    assert 0 == place.run(spec.format("; ".join(commands))).returncode
    refusal = "jobmeter: --run-id: a job has the data of its own run. For others, name the --workflow."
    assert ([refusal, "2"], ["1"]) == (place.lines("refused"), place.lines("earlier"))


def test_a_value_on_stdin_is_small(place: Place) -> None:
    assert 0 == place.run(SPEC).returncode
    done = subprocess.run(
        [sys.executable, "-m", "jobmeter", "data", "set", "settings", "--store", str(place.store)],
        env=place.environment(), cwd=place.folder, input=json.dumps("x" * LARGEST), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    expected = "jobmeter: user data 'settings': stdin has more than 1,048,576 bytes. Use a file.\n"
    assert (2, expected) == (done.returncode, done.stderr)


def test_a_value_is_small(place: Place) -> None:
    directory = DataDirectory(str(place.folder / "data"))
    directory.prepare({"d": UserData(None, False)}, ())
    with pytest.raises(UsageError, match=r"are more than 1,048,576\. Use a file\."):
        directory.set("d", "x" * LARGEST)
    assert not directory.has("d")


def test_names_of_variables_are_those_that_a_shell_takes() -> None:
    assert "JOBMETER_DATA_BEST_MODEL_2" == variable_name("best-model.2")
