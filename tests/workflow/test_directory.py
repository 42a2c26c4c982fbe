from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobmeter.engines.contract import Capacity
from jobmeter.errors import StoreError, UsageError
from jobmeter.workflow.directory import RunDirectory, all_runs, find_run, new_run, run_ids, workflows
from tests.workflow.spec.writing import plan_of

SPEC = "name: {name}\njobs: [{{name: a, command: 'true'}}]\n"
HOLDER = """
import sys
from jobmeter.workflow.directory import RunDirectory
directory = RunDirectory(sys.argv[1], sys.argv[2], int(sys.argv[3]))
directory.claim()
directory.announce()
print("claimed", flush=True)
sys.stdin.read()
"""


def a_run(folder: Path, name: str = "mine") -> RunDirectory:
    """A run that is over."""
    directory = new_run(str(folder / "store"), name)
    directory.keep_plan(plan_of(folder, SPEC.format(name=name)), Capacity(2, None), "local")
    directory.release()
    return directory


def test_runs_of_a_workflow_are_numbered(tmp_path: Path) -> None:
    assert [1, 2, 3] == [a_run(tmp_path).run_id for _ in range(3)]
    assert 1 == a_run(tmp_path, "other").run_id


def test_runs_that_begin_at_one_time_get_numbers_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        run_ids = [made.run_id for made in threads.map(lambda _: new_run(f"{tmp_path}/store", "mine"), range(40))]
    assert list(range(1, 41)) == sorted(run_ids)


def test_a_plan_is_read_as_it_was_kept(tmp_path: Path) -> None:
    plan = a_run(tmp_path, "Mine, all mine").plan()
    assert ("Mine, all mine", "mine-all-mine", 1) == (plan["name"], plan["id"], plan["run_id"])
    assert ["a"] == [job["name"] for job in plan["jobs"]]


def test_a_run_that_was_killed_before_it_kept_its_plan_never_was(tmp_path: Path) -> None:
    first = a_run(tmp_path)
    new_run(f"{tmp_path}/store", "mine").release()
    assert [1] == run_ids(f"{tmp_path}/store", "mine")
    assert first.path == find_run(f"{tmp_path}/store", "mine").path
    assert 3 == a_run(tmp_path).run_id
    new_run(f"{tmp_path}/store", "unborn").release()
    assert ["mine"] == workflows(f"{tmp_path}/store")


def test_one_that_another_process_runs_cannot_be_claimed_until_that_ends(tmp_path: Path) -> None:
    directory = a_run(tmp_path)
    words = [sys.executable, "-c", HOLDER, str(tmp_path / "store"), "mine", "1"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert "claimed\n" == holder.stdout.readline()
        assert directory.is_being_run()
        runner = directory.runner()
        assert runner is not None
        assert (holder.pid, os.uname().nodename) == (runner.pid, runner.host)
        with pytest.raises(UsageError) as refused:
            directory.claim()
        assert f"workflow mine (run 1) is being run by process {holder.pid}" in str(refused.value)
        holder.kill()
    assert not directory.is_being_run()
    directory.claim()
    assert directory.is_being_run()


def test_those_who_look_do_not_keep_one_from_being_claimed(tmp_path: Path) -> None:
    directory = a_run(tmp_path)
    looking = True

    def look() -> None:
        while looking:
            RunDirectory(f"{tmp_path}/store", "mine", 1).is_being_run()

    with ThreadPoolExecutor(2) as threads:
        for _ in range(2):
            threads.submit(look)
        try:
            for _ in range(200):
                directory.claim()
                assert directory.is_being_run()
                directory.release()
        finally:
            looking = False


def test_the_workflow_whose_newest_run_began_last_is_first(tmp_path: Path) -> None:
    for age, name in ((30, "old"), (10, "new"), (20, "middle")):
        path = f"{a_run(tmp_path, name).path}/runner.json"
        os.utime(path, (1e9 - age, 1e9 - age))
    assert ["new", "middle", "old"] == workflows(f"{tmp_path}/store")
    a_run(tmp_path, "old")
    assert [("old", 2), ("old", 1)] == [(run.workflow, run.run_id) for run in all_runs(f"{tmp_path}/store")][:2]
    assert ("old", 2) == (find_run(f"{tmp_path}/store", None).workflow, find_run(f"{tmp_path}/store", "last").run_id)


def test_a_run_is_found_by_id_name_or_spec_and_number(tmp_path: Path) -> None:
    a_run(tmp_path, "My Workflow")
    a_run(tmp_path, "My Workflow")
    for text in ("my-workflow", "My Workflow", str(tmp_path / "spec.yaml")):
        assert ("my-workflow", 2) == (find_run(f"{tmp_path}/store", text).workflow, find_run(f"{tmp_path}/store", text).run_id)  # fmt: skip  # noqa: E501
    assert 1 == find_run(f"{tmp_path}/store", "my-workflow", 1).run_id


@pytest.mark.parametrize(
    ("text", "run_id", "message"),
    [
        ("mine", 7, "workflow mine has no run 7. There are: 1, 2."),
        ("mine", 0, "workflow mine has no run 0. There are: 1, 2."),
        ("mien", None, "there is no workflow 'mien'. Did you mean 'mine'?"),
        ("elephant", None, "there is no workflow 'elephant'. `jobmeter workflow list` lists those that were run."),
        ("../mine", 3, "workflow mine has no run 3. There are: 1, 2."),
    ],
)
def test_a_run_that_is_not_there_is_reported_in_one_line(
    tmp_path: Path, text: str, run_id: int | None, message: str
) -> None:
    a_run(tmp_path)
    a_run(tmp_path)
    with pytest.raises(UsageError) as refused:
        find_run(f"{tmp_path}/store", text, run_id)
    assert message == str(refused.value)


def test_a_plan_that_is_damaged_or_of_another_version_is_reported_with_its_path(tmp_path: Path) -> None:
    directory = a_run(tmp_path)
    path = Path(directory.path, "plan.json")
    path.write_text(path.read_text(encoding="utf-8")[:50], encoding="utf-8")
    with pytest.raises(StoreError, match=r"plan\.json: damaged"):
        directory.plan()
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(StoreError, match=r"plan\.json: damaged"):
        directory.plan()
    path.write_text(json.dumps({"schema": "jobmeter.workflow/99"}), encoding="utf-8")
    with pytest.raises(StoreError, match=r"written as jobmeter\.workflow/99"):
        directory.plan()


def test_a_store_that_is_a_file_is_reported_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "store").touch()
    with pytest.raises(StoreError, match=r"Not a directory\. Name another place with --store\."):
        new_run(f"{tmp_path}/store", "mine")
