"""Where settings come from: the call, then the environment, then the project's file, then the user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobmeter.errors import UsageError
from jobmeter.settings import (
    Configuration,
    memory_bytes,
    positive_bytes,
    positive_whole_number,
    signed_whole_number,
    whole_number,
)
from tests.running import environment, jobmeter, workplace


def interval_used(arguments: list[str], *, project: str = "", user: str = "", **variables: str) -> float:
    folder = workplace()
    Path(folder, "deep", "below").mkdir(parents=True)
    if project:
        Path(folder, "jobmeter.toml").write_text(project)
    if user:
        Path(folder, "config", "jobmeter").mkdir(parents=True)
        Path(folder, "config", "jobmeter", "config.toml").write_text(user)
    settings = {**environment(), "HOME": folder, "XDG_CONFIG_HOME": f"{folder}/config", **variables}
    report = f"{folder}/r.json"
    options = ["--quiet", "--store", folder, "--report", report, *arguments]
    done = jobmeter("run", *options, "true", env=settings, cwd=f"{folder}/deep/below")
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(Path(report).read_text())
    return float(record["provenance"]["interval_seconds"])


def test_the_default_is_one_second() -> None:
    assert interval_used([]) == 1.0


def test_the_users_file_goes_before_the_default() -> None:
    assert interval_used([], user='interval = "2s"') == 2.0


def test_the_projects_file_is_found_above_and_goes_before_the_users() -> None:
    assert interval_used([], user="interval = 2", project="interval = 3") == 3.0


def test_the_environment_goes_before_files() -> None:
    assert interval_used([], project="interval = 3", JOBMETER_INTERVAL="4") == 4.0


def test_the_command_line_goes_before_all() -> None:
    assert interval_used(["--interval", "5"], project="interval = 3", JOBMETER_INTERVAL="4") == 5.0


def test_measurements_are_selected_by_the_environment() -> None:
    folder = workplace()
    settings = {**environment(), "HOME": folder, "JOBMETER_MEASUREMENTS": "proc_processes,rusage_*"}
    jobmeter("run", "--quiet", "--report", f"{folder}/r.json", "true", env=settings)
    record = json.loads(Path(folder, "r.json").read_text())
    assert set(record["measurements"]) == {
        "proc_processes", "rusage_cpu_seconds", "rusage_user_seconds", "rusage_system_seconds", "rusage_maxrss",
    }  # fmt: skip


def test_the_store_is_named_by_the_environment() -> None:
    folder = workplace()
    jobmeter("run", "--quiet", "true", env={**environment(), "HOME": folder, "JOBMETER_STORE": f"{folder}/mine"})
    assert len(list(Path(folder, "mine", "journal").iterdir())) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("intervall = 2", "there is no setting 'intervall'. Did you mean 'interval'?"),
        ("interval = 0", "interval: '0' is not above 0"),
        ("orphans = 'eat'", "orphans: 'eat' is not one of"),
    ],
)
def test_a_bad_setting_is_named_with_its_file(content: str, words: str) -> None:
    folder = workplace()
    Path(folder, "jobmeter.toml").write_text(content)
    done = jobmeter("run", "--quiet", "true", cwd=folder)
    assert f"{folder}/jobmeter.toml" in done.stderr
    assert words in done.stderr


@pytest.mark.parametrize(("user", "used"), [("interval = 2", 2.0), ("", 1.0)])
def test_a_bad_value_is_ignored_with_a_warning_that_holds_whichever_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, used: float
) -> None:
    (tmp_path / "jobmeter.toml").write_text("interval = 0")
    (tmp_path / "jobmeter").mkdir()
    (tmp_path / "jobmeter" / "config.toml").write_text(user)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("JOBMETER_INTERVAL", raising=False)
    warnings: list[str] = []
    assert used == Configuration(warnings.append).resolve("interval")
    assert [f"{tmp_path}/jobmeter.toml: interval: '0' is not above 0; this value is ignored"] == warnings


@pytest.mark.parametrize("variable", ["JOBMETER_INTERVAL"])
def test_a_bad_variable_is_named(variable: str) -> None:
    done = jobmeter("run", "true", env={**environment(), variable: "abc"})
    assert (2, True) == (done.returncode, done.stderr.startswith(f"jobmeter: {variable}: 'abc'"))


@pytest.mark.parametrize("text", ["", "-", "x", "1.0", "1e3", " 1", "²", "٣", "1" * 10, "1" * 5000])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a whole number"):
        signed_whole_number(text)


def test_whole_numbers_have_the_sign_that_their_use_allows() -> None:
    assert [signed_whole_number("-7"), whole_number("0"), positive_whole_number("+7")] == [-7, 0, 7]
    with pytest.raises(UsageError, match="'-1' is not a whole number from 0 up"):
        whole_number("-1")
    with pytest.raises(UsageError, match="'0' is not a whole number above 0"):
        positive_whole_number("0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4", "4 has no unit. Write 4g or 4m."),
        ("1.5", "1.5 has no unit. Write 1.5g or 1.5m."),
        ("1023", "1023 has no unit. Write 1023g or 1023m."),
        ("512b", "'512b' is less than 1 KiB, too little for any program."),
        ("0.5k", "'0.5k' is less than 1 KiB, too little for any program."),
        ("0", "'0' is not above 0"),
    ],
)
def test_an_amount_of_memory_whose_unit_was_forgotten_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        positive_bytes(text)
    assert str(refused.value).startswith(message)


def test_bytes_without_a_unit_are_bytes_from_a_kibibyte_on() -> None:
    assert (1024, 4 << 30) == (positive_bytes("1024"), positive_bytes(str(4 << 30)))
    assert (None, 4 << 30, 2 << 20) == (memory_bytes(None), memory_bytes(4 << 30), memory_bytes("2m"))
    with pytest.raises(UsageError, match="4 has no unit"):
        memory_bytes(4)


@pytest.mark.parametrize("command", [["run", "--memory", "4", "true"], ["workflow", "run", "--memory", "4", "x.yaml"]])
def test_the_option_says_what_is_missing(command: list[str]) -> None:
    done = jobmeter(*command)
    assert (2, "jobmeter: --memory: 4 has no unit. Write 4g or 4m.\n") == (done.returncode, done.stderr)
