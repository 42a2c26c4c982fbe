"""A store is its user's alone, unless it was opened to a group."""

from __future__ import annotations

import grp
import json
import os
import stat
from pathlib import Path

import pytest

from tests.parts import missing
from tests.running import NOBODY, workplace
from tests.several_users import ANOTHER, jobmeter_of

GROUP = next((group for group in grp.getgrall() if 0 < group.gr_gid < 1000 and not group.gr_mem), None)
"""A group of the system that users of these tests become members of."""


def modes(store: str) -> dict[str, int]:
    """The permissions of everything in the store, by its path there; the store itself is `.`."""
    by_path = {".": stat.S_IMODE(os.stat(store).st_mode)}
    for folder, folders, files in os.walk(store):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            by_path[os.path.relpath(path, store)] = stat.S_IMODE(os.lstat(path).st_mode)
    return by_path


def spec(folder: str) -> str:
    path = Path(folder, "flow.yaml")
    path.write_text("name: demo\njobs:\n  - name: a\n    command: echo hello\n")
    path.chmod(0o644)
    return str(path)


@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o277])
def test_a_new_store_is_its_users_alone_whatever_the_umask(umask: int) -> None:
    folder = workplace()
    store = f"{folder}/new/store"
    for words in (["run", "--quiet", "--", "true"], ["workflow", "run", "--quiet", spec(folder)], ["ls"]):
        os.makedirs(f"{folder}/new", exist_ok=True)
        os.chmod(f"{folder}/new", 0o777)
        at = len(words) if words[0] != "run" else 1
        done = jobmeter_of(*words[:at], "--store", store, *words[at:], user=NOBODY, umask=umask)
        assert done.returncode == 0, done.stderr
    by_path = modes(store)
    assert {"index.db", "workflows/demo/1/plan.json", "workflows/demo/1/runner.json"} <= by_path.keys()
    wrong = {path: oct(mode) for path, mode in by_path.items() if mode & 0o077}
    assert not wrong


def test_others_cannot_read_what_a_job_was_called_with() -> None:
    store = f"{workplace()}/store"
    jobmeter_of("run", "--quiet", "--store", store, "--", "true", "private-argument", user=NOBODY)
    done = jobmeter_of("ls", "--store", store, user=ANOTHER)
    assert (125, True) == (done.returncode, "Permission denied" in done.stderr)


def test_an_older_store_that_others_may_read_stays_as_it_is_and_doctor_says_so() -> None:
    store = f"{workplace()}/store"
    os.makedirs(f"{store}/journal")
    for path in (store, f"{store}/journal"):
        os.chmod(path, 0o755)
        os.chown(path, NOBODY, NOBODY)
    jobmeter_of("run", "--quiet", "--store", store, "--", "true", user=NOBODY)
    assert {0o755, 0o644} == set(modes(store).values())
    assert jobmeter_of("ls", "--store", store, user=ANOTHER).returncode == 0
    done = jobmeter_of("doctor", user=NOBODY, variables={"JOBMETER_STORE": store})
    assert f"{store}: other users can read it" in done.stdout
    assert f"chmod -R go= {store}" in done.stdout


def test_an_older_store_is_no_more_open_than_the_umask_says() -> None:
    store = f"{workplace()}/store"
    os.makedirs(f"{store}/journal")
    os.chmod(f"{store}/journal", 0o755)
    jobmeter_of("run", "--quiet", "--store", store, "--", "true", umask=0o077)
    assert [0o600] == [mode for path, mode in modes(store).items() if path.endswith(".jsonl")]


@pytest.fixture
def group() -> grp.struct_group:
    if GROUP is None:
        missing("there is no group that nobody is a member of")
    return GROUP


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_members_of_the_group_share_a_store(group: grp.struct_group, umask: int) -> None:
    store, gid = f"{workplace()}/store", (group.gr_gid,)
    first = ("run", "--quiet", "--share-group", group.gr_name, "--store", store, "--name", "first", "--", "true")
    done = jobmeter_of(*first, user=NOBODY, groups=gid, umask=umask)
    assert done.returncode == 0, done.stderr
    for user in (NOBODY, ANOTHER):
        listed = jobmeter_of("ls", "--json", "--store", store, user=user, groups=gid, umask=umask)
        assert ["first"] == [run["name"] for run in json.loads(listed.stdout)], listed.stderr
        assert listed.stderr == ""
    second = ("run", "--quiet", "--store", store, "--name", "second", "--", "true")
    assert jobmeter_of(*second, user=ANOTHER, groups=gid, umask=umask).returncode == 0
    flow = jobmeter_of("workflow", "run", "--quiet", "--store", store, spec(workplace()), user=ANOTHER, groups=gid)
    assert flow.returncode == 0, flow.stderr
    # Each may label, prune and list what the other stored, through one index.
    assert jobmeter_of("label", "first", "a=b", "--store", store, user=ANOTHER, groups=gid, umask=umask).returncode == 0
    pruned = jobmeter_of(
        "gc", "--older-than", "0.001s", "--keep-summary", "--store", store, user=NOBODY, groups=gid, umask=umask
    )
    assert (pruned.returncode, pruned.stdout) == (0, ""), pruned.stderr
    for user in (ANOTHER, NOBODY):
        listed = jobmeter_of("ls", "--json", "--store", store, user=user, groups=gid, umask=umask)
        assert {"first", "second", "a"} == {run["name"] for run in json.loads(listed.stdout)}, listed.stderr
    results = jobmeter_of("workflow", "results", "demo", "--store", store, user=NOBODY, groups=gid)
    assert (results.returncode, results.stderr) == (0, "")
    by_path = modes(store)
    assert {0o2770, 0o660} == set(by_path.values()), {path: oct(mode) for path, mode in by_path.items()}
    assert {group.gr_gid} == {os.lstat(f"{store}/{path}").st_gid for path in by_path}
    # And nobody else.
    assert jobmeter_of("ls", "--store", store, user=ANOTHER).returncode == 125


def test_a_store_is_opened_later_with_all_its_runs(group: grp.struct_group) -> None:
    store, gid = f"{workplace()}/store", (group.gr_gid,)
    for words in (["run", "--quiet", "--store", store, "--name", "early", "--", "true"], ["ls", "--store", store]):
        assert jobmeter_of(*words, user=NOBODY, groups=gid).returncode == 0
    assert jobmeter_of("ls", "--store", store, user=ANOTHER, groups=gid).returncode == 125
    opening = ("run", "--quiet", "--store", store, "--share-group", group.gr_name, "--name", "late", "--", "true")
    assert jobmeter_of(*opening, user=ANOTHER, groups=gid).returncode == 2  # it is not theirs to open
    assert jobmeter_of(*opening, user=NOBODY).returncode == 2  # not a member
    assert jobmeter_of(*opening, user=NOBODY, groups=gid).returncode == 0
    listed = jobmeter_of("ls", "--json", "--store", store, user=ANOTHER, groups=gid)
    assert {"early", "late"} == {run["name"] for run in json.loads(listed.stdout)}, listed.stderr
    assert {0o2770, 0o660} == set(modes(store).values())


def test_opening_a_store_does_not_open_what_was_linked_into_it(group: grp.struct_group) -> None:
    place = workplace()
    store, victim = f"{place}/store", Path(place, "victim")
    jobmeter_of("run", "--quiet", "--store", store, "--", "true")
    victim.write_text("")
    victim.chmod(0o600)
    os.link(victim, f"{store}/journal/x.jsonl")
    os.symlink(victim, f"{store}/journal/y.jsonl")
    jobmeter_of("run", "--quiet", "--store", store, "--share-group", group.gr_name, "--", "true")
    assert (0o600, os.getgid()) == (stat.S_IMODE(victim.stat().st_mode), victim.stat().st_gid)


def test_the_configuration_opens_a_new_store_and_never_one_that_has_runs(group: grp.struct_group) -> None:
    folder = workplace()
    Path(folder, "jobmeter.toml").write_text(f"share_group = '{group.gr_name}'\nstore = '{folder}/new'\n")
    done = jobmeter_of("run", "--quiet", "--", "true", cwd=folder)
    assert (0, "", 0o2770) == (done.returncode, done.stderr, modes(f"{folder}/new")["journal"])
    jobmeter_of("run", "--quiet", "--store", f"{folder}/mine", "--", "true")
    done = jobmeter_of("run", "--quiet", "--store", f"{folder}/mine", "--", "true", cwd=folder)
    assert (0, 0o700) == (done.returncode, modes(f"{folder}/mine")["journal"])
    assert "--share-group" in done.stderr


def test_a_group_that_is_none_is_refused_before_the_job_starts() -> None:
    done = jobmeter_of("run", "--share-group", "no-such-group", "--", "touch", f"{workplace()}/ran")
    assert (2, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert "there is no group 'no-such-group'" in done.stderr
