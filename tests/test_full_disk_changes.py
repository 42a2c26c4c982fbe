"""`import`, `label` and `workflow run` on a full disk: done wholly or not at all, one clear line, no run lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exchange.reading import FIXTURES
from tests.small_disk import empty, fill, small_disk
from tests.store.kept import five, journal_of, kept
from tests.store.test_full_disk import do, in_another_process
from tests.workflow.live import Place

FIVE = {"aaa1", "aab2", "bbb3", "ccc4", "ddd5"}
SPEC = """
name: flow
user_data: [{name: big, data: "%s"}]
jobs:
  - {name: one, command: "echo ran >>ran"}
  - {name: two, command: "echo ran >>ran", depends_on: [one]}
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB with a store of five runs."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, "4m") as disk:
        in_another_process(lambda: kept(disk / "store", *five()))
        yield disk


def stored(disk: Path) -> set[str]:
    code, out, err = do(disk / "store", "ls", "--limit", "0", "--json")
    assert (0, []) == (code, err)
    return {row["id"] for row in json.loads(out)}


@pytest.mark.parametrize("room", [0, 4096, 8192, 16384])
def test_an_import_without_space_stores_nothing_and_says_so(disk: Path, room: int) -> None:
    before = sorted(os.listdir(disk / "store" / "journal"))
    fill(disk, room)
    code, out, err = do(disk / "store", "import", str(FIXTURES / "sacct.txt"))
    assert (125, "", 1) == (code, out, len(err)), err
    assert err[0].endswith("No space left on device")
    assert before == sorted(os.listdir(disk / "store" / "journal"))
    empty(disk)
    assert stored(disk) == FIVE
    code, out, err = do(disk / "store", "import", str(FIXTURES / "sacct.txt"))
    assert (0, True) == (code, "10 new, 0 known" in out), err


def test_a_large_import_that_fills_the_disk_keeps_whole_runs_alone(disk: Path) -> None:
    """Runs are stored 5,000 at a time: those of a part that found its space are there, of the others none."""
    head, *rows = (FIXTURES / "sacct_noconvert.txt").read_text().splitlines()
    number = rows[0].split("|")[head.split("|").index("JobID")]
    table = disk.parent / "many.txt"
    lines = ["|".join(str(n) if cell == number else cell for cell in rows[0].split("|")) for n in range(9000)]
    table.write_text("\n".join([head, *lines]))
    code, out, err = do(disk / "store", "import", str(table))
    assert (125, "") == (code, out), err
    assert "No space left on device" in err[-1]
    assert [] == [line for line in err if "Traceback" in line]
    assert FIVE == stored(disk) or len(FIVE) + 5000 == len(stored(disk))
    assert [] == [name for name in os.listdir(disk / "store" / "journal") if name.startswith(".")]


@pytest.mark.parametrize("index", ["present", "absent"])
def test_a_label_without_space_changes_nothing_and_says_so(disk: Path, index: str) -> None:
    """The journal ends with its block: one more line needs another."""
    journal = journal_of(disk / "store", "aaa1")
    line = '{"labels":{"note":"%s"},"run":"aaa1"}\n'
    with open(journal, "a") as file:
        file.write(line % ("x" * (-(os.path.getsize(journal) + len(line) - 2) % 4096)))
    assert os.path.getsize(journal) % 4096 == 0
    assert stored(disk) == FIVE
    for path in (disk / "store").glob("index.db*") if index == "absent" else ():
        path.unlink()
    before = journal.read_bytes()
    fill(disk)
    code, _, err = do(disk / "store", "label", "aaa1", "team=b")
    assert [] == [line for line in err if "Traceback" in line]
    assert (125, f"jobmeter: {journal}: No space left on device") == (code, err[-1])
    assert before == journal.read_bytes()
    empty(disk)
    assert stored(disk) == FIVE
    code, out, err = do(disk / "store", "label", "aaa1", "team=b")
    assert (0, True, []) == (code, "team=b\n" in out, err)


def test_a_label_that_fits_into_the_journal_is_added_although_the_index_has_no_space(disk: Path) -> None:
    fill(disk)
    code, out, err = do(disk / "store", "label", "bbb3", "team=c")
    assert (0, "team=c\n") == (code, out), err
    assert [] == [line for line in err if "index in memory" not in line]
    empty(disk)
    assert (0, "team=c\n", []) == do(disk / "store", "label", "bbb3")


@pytest.mark.parametrize("room", [0, 4096, 8192])
def test_a_workflow_without_space_for_its_plan_starts_nothing_and_leaves_nothing(disk: Path, room: int) -> None:
    place = Place(disk.parent)
    place.store = disk / "store"
    fill(disk, room)
    done = place.run(SPEC % ("x" * 20_000))
    assert (125, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert "No space left on device" in done.stderr
    assert str(disk / "store" / "workflows" / "flow" / "1") in done.stderr
    assert [] == place.lines("ran")
    assert [] == os.listdir(disk / "store" / "workflows" / "flow")
    empty(disk)
    done = place.run(SPEC % "x")
    assert (0, ["ran", "ran"]) == (done.returncode, place.lines("ran")), done.stderr
    assert {"one": "completed", "two": "completed"} == place.statuses()
    assert len(FIVE) + 2 == len(stored(disk))


def test_a_workflow_whose_disk_fills_up_runs_to_its_end_and_loses_no_earlier_run(disk: Path) -> None:
    place = Place(disk.parent)
    place.store = disk / "store"
    full = f"[ -e ran ] || cat /dev/zero >{disk}/ballast; echo ran >>ran"
    spec = f"name: flow\njobs: [{{name: one, command: '{full}'}}, {{name: two, command: 'echo ran >>ran'}}]"
    done = place.run(spec, "--cpus", "1")
    assert "Traceback" not in done.stderr
    assert 1 == done.stderr.count("the journal is incomplete"), done.stderr
    assert ["ran", "ran"] == place.lines("ran")
    empty(disk)
    assert FIVE <= stored(disk)
    assert 0 == place.call("resume", "flow").returncode
    assert {"one": "completed", "two": "completed"} == place.statuses()
