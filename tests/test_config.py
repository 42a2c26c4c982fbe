"""Configuration files of other users, and files that are no configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.parts import need_root
from tests.running import NOBODY, environment, jobmeter, workplace
from tests.several_users import ANOTHER, jobmeter_of


def plant(path: str, content: str = "interval = 3", *, owner: int | None = None, mode: int = 0o644) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content)
    os.chmod(path, mode)
    if owner is not None and owner != os.getuid():
        need_root("to have files of several users")
        os.chown(path, owner, owner)
    return path


def run_in(folder: str, *, user: int | None = None, **variables: str) -> tuple[float, list[str]]:
    """The interval that `run` used there, and what it printed. The job always ran."""
    place = workplace()
    report = f"{place}/r.json"
    settings = {**environment(), "HOME": place, **variables}
    words = ["--quiet", "--report", report, "sh", "-c", f"touch {place}/ran; exit 7"]
    done = jobmeter("run", *words, user=user, cwd=folder, env=settings)
    assert (7, True) == (done.returncode, os.path.exists(f"{place}/ran")), done.stderr
    record: dict[str, Any] = json.loads(Path(report).read_text())
    return float(record["provenance"]["interval_seconds"]), done.stderr.splitlines()


def test_a_file_of_ones_own_is_obeyed_without_a_word() -> None:
    folder = workplace()
    plant(f"{folder}/jobmeter.toml", owner=NOBODY)
    assert run_in(folder, user=NOBODY) == (3.0, [])


def test_a_file_of_root_is_obeyed() -> None:
    folder = workplace()
    plant(f"{folder}/jobmeter.toml", owner=0)
    assert run_in(folder, user=NOBODY) == (3.0, [])


@pytest.mark.parametrize("user", [0, NOBODY])
def test_a_file_of_another_user_is_ignored_and_the_next_above_is_obeyed(user: int) -> None:
    folder = workplace()
    plant(f"{folder}/jobmeter.toml", "interval = 4", owner=user)
    below = f"{folder}/deep/below"
    path = plant(f"{below}/jobmeter.toml", owner=ANOTHER)
    interval, said = run_in(below, user=user)
    assert (4.0, 1) == (interval, len(said))
    assert said[0].startswith(f"jobmeter: {path} is ignored: it belongs to ")
    assert "chown" in said[0]


def test_another_users_file_does_not_send_roots_journal_to_that_user() -> None:
    folder, theirs = workplace(), workplace()
    plant(f"{folder}/jobmeter.toml", f"store = '{theirs}/store'", owner=ANOTHER)
    done = jobmeter("run", "--quiet", "true", cwd=folder)
    assert (0, []) == (done.returncode, os.listdir(theirs))


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_a_file_that_others_can_write_is_ignored(mode: int) -> None:
    folder = workplace()
    path = plant(f"{folder}/jobmeter.toml", mode=mode)
    os.chown(path, os.getuid(), NOBODY)  # not the group of its owner alone
    interval, said = run_in(folder)
    assert interval == 1.0
    assert said == [f"jobmeter: {path} is ignored: other users can write to it. To use it: chmod go-w {path}"]


def test_the_advice_helps() -> None:
    folder = workplace()
    path = plant(f"{folder}/jobmeter.toml", mode=0o666)
    _, said = run_in(folder)
    assert os.system(said[0].partition("To use it: ")[2]) == 0
    assert run_in(folder) == (3.0, [])
    os.unlink(path)


def test_a_link_of_another_user_is_not_followed_to_a_file_of_ones_own() -> None:
    folder, own = workplace(), workplace()
    plant(f"{own}/jobmeter.toml", owner=NOBODY)
    os.symlink(f"{own}/jobmeter.toml", f"{folder}/jobmeter.toml")
    need_root("to have links of several users")
    os.lchown(f"{folder}/jobmeter.toml", ANOTHER, ANOTHER)
    interval, said = run_in(folder, user=NOBODY)
    assert interval == 1.0
    assert [True] == ["symbolic link of" in line for line in said]


def test_a_link_of_ones_own_is_followed() -> None:
    folder, own = workplace(), workplace()
    os.symlink(plant(f"{own}/jobmeter.toml"), f"{folder}/jobmeter.toml")
    assert run_in(folder) == (3.0, [])


def test_a_hard_link_that_another_may_have_made_is_ignored() -> None:
    folder, own = workplace(), workplace()
    os.link(plant(f"{own}/jobmeter.toml"), f"{folder}/jobmeter.toml")
    interval, said = run_in(folder)
    assert interval == 1.0
    assert [True] == ["hard link" in line for line in said]


def test_the_users_own_file_is_checked_as_well() -> None:
    place = workplace()
    path = plant(f"{place}/jobmeter/config.toml", owner=ANOTHER)
    interval, said = run_in(workplace(), XDG_CONFIG_HOME=place)
    assert interval == 1.0
    assert [True] == [line.startswith(f"jobmeter: {path} is ignored") for line in said]


BAD = {
    "syntax": b"interval = = 3",
    "not UTF-8": b"interval = '\xff'",
    "unknown key": b"intervall = 3",
    "bool": b"interval = true",
    "table": b"[interval]\nx = 1",
    "list of numbers": b"measurements = [1, 2]",
    "a number as the store": b"store = 5",
    "a date": b"window = 2020-01-01",
    "infinite": b"interval = inf",
    "not a number": b"interval = nan",
    "10^400": b"interval = 1" + b"0" * 400,
    "many digits": b"interval = 1" + b"0" * 5000,
    "nested": b"measurements = " + b"[" * 100_000 + b"]" * 100_000,
    "huge": b"# " + b"x" * (2 << 20),
    "NUL": b"store = '\0'",
    "NUL in a name": b'store = "a\\u0000b"',
    "redact is a text": b"redact = 'x'",
    "not a regular expression": b"redact = ['/(/']",
    "no such group": b"share_group = 'no-such-group-here'",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_a_bad_file_never_stops_a_job(content: bytes) -> None:
    folder = workplace()
    Path(folder, "jobmeter.toml").write_bytes(content)
    interval, said = run_in(folder)
    assert (1.0, 1) == (interval, len(said)), said
    assert f"{folder}/jobmeter.toml" in said[0]


@pytest.mark.parametrize("kind", ["fifo", "directory", "unreadable", "dangling link", "link to itself", "/dev/zero"])
def test_what_is_no_file_never_stops_a_job(kind: str) -> None:
    folder = workplace()
    path = f"{folder}/jobmeter.toml"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        os.mkdir(path)
    elif kind == "unreadable":
        plant(path, mode=0)
    else:
        os.symlink({"dangling link": "nothing", "link to itself": path}.get(kind, kind), path)
    if os.getuid() == 0:
        os.lchown(path, NOBODY, NOBODY)
    interval, said = run_in(folder, user=NOBODY)
    assert (1.0, 1) == (interval, len(said)), said
    assert said[0].startswith(f"jobmeter: {path}")


def test_a_key_of_a_file_that_does_not_exist_never_stops_a_job() -> None:
    folder = workplace()
    plant(f"{folder}/jobmeter.toml", "measurements = ['proc_no_such']")
    _, said = run_in(folder)
    assert [True] == ["'proc_no_such'" in line for line in said]


def test_a_key_of_a_file_that_cannot_be_measured_here_never_stops_a_job() -> None:
    folder = workplace()
    plant(f"{folder}/jobmeter.toml", "measurements = ['default', 'cgroup_mem_peak']", owner=NOBODY)
    assert run_in(folder, user=NOBODY) == (1.0, [])


def test_the_good_settings_of_a_file_with_a_bad_one_hold() -> None:
    folder = workplace()
    Path(folder, "jobmeter.toml").write_text("interval = 3\nwindow = 'x'\nno_such = 1")
    interval, said = run_in(folder)
    assert (3.0, 2) == (interval, len(said))


def test_other_commands_fail_with_one_line() -> None:
    folder = workplace()
    Path(folder, "jobmeter.toml").write_text("store = 5")
    for command in (["ls"], ["gc", "--older-than", "1d"], ["show"]):
        done = jobmeter_of(*command, cwd=folder)
        assert (2, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr


def test_doctor_shows_what_is_wrong_with_a_file() -> None:
    folder = workplace()
    path = plant(f"{folder}/jobmeter.toml", "store = 5")
    done = jobmeter("doctor", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"{path}: store: '5' is not a text" in done.stdout
