from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.kernel.tree import Tree

ROOT = 100


class FakeProc:
    """A folder that looks like /proc, as far as a tree reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine = Machine(proc=str(folder))
        self.newest(1)

    def newest(self, pid: int) -> None:
        (self.folder / "loadavg").write_text(f"0.00 0.01 0.05 1/80 {pid}\n")

    def put(self, pid: int, parent: int, *, start: int = 0, state: str = "S", user: int = 0) -> None:
        (self.folder / str(pid)).mkdir(exist_ok=True)
        counters = f"0 0 0 0 {user} 0 0 0 20 0 1 0 {start or pid} 4096 1"
        (self.folder / str(pid) / "stat").write_text(f"{pid} (p{pid}) {state} {parent} 0 0 0 -1 0 {counters}\n")

    def take_away(self, pid: int) -> None:
        shutil.rmtree(self.folder / str(pid))

    def tree(self) -> Tree:
        """Without kept descriptors: those of plain files outlive the file, those of /proc do not."""
        return Tree(self.machine, ROOT, keep_open=0)


@pytest.fixture
def fake(tmp_path: Path) -> FakeProc:
    fake = FakeProc(tmp_path)
    fake.put(1, 0)
    fake.put(ROOT, 1)
    return fake


def test_all_descendants_are_members_and_nobody_else(fake: FakeProc) -> None:
    fake.put(101, ROOT)
    fake.put(102, 101)
    fake.put(103, 102)
    fake.put(200, 1)
    fake.put(201, 200)
    tree = fake.tree()
    tree.refresh()
    assert [101, 102, 103] == list(tree.members)


def test_parents_with_higher_pids_than_their_children_come_first(fake: FakeProc) -> None:
    fake.put(104, ROOT)
    fake.put(103, 104)
    fake.put(102, 103)
    fake.put(101, 102)
    tree = fake.tree()
    tree.refresh()
    assert [104, 103, 102, 101] == list(tree.members)


def test_a_new_process_is_looked_for_only_when_the_newest_pid_changed(fake: FakeProc) -> None:
    tree = fake.tree()
    tree.refresh()
    fake.put(101, ROOT)
    tree.refresh()
    before = list(tree.members)
    fake.newest(101)
    tree.refresh()
    assert ([], [101]) == (before, list(tree.members))


def test_after_a_process_vanished_others_are_looked_for_whatever_the_newest_pid(fake: FakeProc) -> None:
    fake.put(101, ROOT)
    tree = fake.tree()
    tree.refresh()
    fake.take_away(101)
    fake.put(102, ROOT)
    tree.refresh()
    assert [102] == list(tree.members)


def test_who_is_gone_is_vanished_once_with_its_last_figures(fake: FakeProc) -> None:
    fake.put(101, ROOT, user=7)
    tree = fake.tree()
    tree.refresh()
    fake.take_away(101)
    tree.refresh()
    vanished = [(process.identity.pid, process.stat.user) for process in tree.vanished]
    tree.refresh()
    assert ([(101, 7)], [], []) == (vanished, tree.vanished, list(tree.members))


def test_a_pid_whose_start_time_changed_is_another_process(fake: FakeProc) -> None:
    fake.put(101, ROOT, start=5000, user=7)
    tree = fake.tree()
    tree.refresh()
    first = tree.members[101]
    fake.put(101, ROOT, start=6000, user=1)
    tree.refresh()
    assert (5000, False, 7) == (first.identity.start, first.present, first.stat.user)
    assert ([first], (6000, 1)) == (tree.vanished, (tree.members[101].identity.start, tree.members[101].stat.user))


def test_a_pid_reused_outside_the_job_is_no_member(fake: FakeProc) -> None:
    fake.put(101, ROOT, start=5000)
    tree = fake.tree()
    tree.refresh()
    fake.put(101, 1, start=6000)
    fake.newest(101)
    tree.refresh()
    assert [] == list(tree.members)


def test_a_root_whose_pid_was_reused_is_no_longer_present(fake: FakeProc) -> None:
    tree = fake.tree()
    tree.refresh()
    before = tree.root.present
    fake.put(ROOT, 1, start=9999)
    tree.refresh()
    assert (True, False) == (before, tree.root.present)


@pytest.mark.parametrize("content", [None, b"", b"101 (p1"], ids=["no file", "empty", "half a line"])
def test_an_entry_that_vanishes_in_mid_read_is_passed_over_and_tried_again(
    fake: FakeProc, content: bytes | None
) -> None:
    (fake.folder / "101").mkdir()
    if content is not None:
        (fake.folder / "101" / "stat").write_bytes(content)
    fake.put(102, ROOT)
    tree = fake.tree()
    tree.refresh()
    without = list(tree.members)
    fake.put(101, ROOT)
    fake.newest(103)
    tree.refresh()
    assert ([102], [102, 101]) == (without, list(tree.members))


@pytest.mark.parametrize("content", [b"", b"101 (p101) S 100 0"], ids=["empty", "half a line"])
def test_a_member_whose_stat_cannot_be_read_has_vanished(fake: FakeProc, content: bytes) -> None:
    fake.put(101, ROOT)
    tree = Tree(fake.machine, ROOT)
    tree.refresh()
    (fake.folder / "101" / "stat").write_bytes(content)
    tree.refresh()
    assert [101] == [process.identity.pid for process in tree.vanished]


def test_an_orphan_stays_a_member_when_its_parent_is_gone(fake: FakeProc) -> None:
    fake.put(101, ROOT)
    fake.put(102, 101)
    tree = fake.tree()
    tree.refresh()
    fake.take_away(101)
    fake.put(102, ROOT)
    tree.refresh()
    assert [(102, ROOT)] == [(pid, process.stat.ppid) for pid, process in tree.members.items()]


def test_a_zombie_is_a_member_that_does_not_run(fake: FakeProc) -> None:
    fake.put(101, ROOT, state="Z")
    fake.put(102, ROOT, state="D")
    tree = fake.tree()
    tree.refresh()
    assert ([101, 102], [102]) == (list(tree.members), [process.identity.pid for process in tree.running()])


def test_with_an_only_child_processes_already_there_are_not_looked_at(fake: FakeProc) -> None:
    fake.put(101, ROOT)
    fake.put(102, ROOT)
    tree = Tree(fake.machine, ROOT, only_child=101, keep_open=0)
    tree.refresh()
    fake.put(103, 101)
    fake.newest(103)
    tree.refresh()
    assert [101, 103] == list(tree.members)


@contextmanager
def interpreter(program: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python that has said it is ready and ends when its input does."""
    program = f"{program}\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child
        finally:
            child.kill()


@pytest.mark.skipif(not THIS_MACHINE.has_proc(), reason="no /proc here")
def test_a_kept_descriptor_reports_the_end_of_a_real_process() -> None:
    program = "import subprocess; children = [subprocess.Popen(['sleep', '60']) for _ in range(3)]"
    program += "\nprint(flush=True); input(); children[0].kill(); children[0].wait()"
    with interpreter(program) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        tree = Tree(THIS_MACHINE, parent.pid)
        tree.refresh()
        members = set(tree.members)
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        parent.stdout.readline()
        tree.refresh()
        gone = [process.identity.pid for process in tree.vanished]
        for process in tree.running():
            subprocess.run(["kill", str(process.identity.pid)], check=True)
        left = set(tree.members)
        tree.close()
    assert (3, 1, members) == (len(members), len(gone), left | set(gone))


def test_a_strangers_pid_that_the_job_gets_after_pids_began_anew_is_found(fake: FakeProc) -> None:
    fake.put(500, 1)
    fake.newest(900)
    tree = fake.tree()
    tree.refresh()
    assert [] == list(tree.members)
    fake.put(500, ROOT, start=7000)
    fake.newest(501)
    tree.refresh()
    assert [500] == list(tree.members)


def test_a_process_whose_parent_is_listed_one_scan_later_is_found(fake: FakeProc) -> None:
    fake.put(50, 60)
    tree = fake.tree()
    tree.refresh()
    fake.put(60, ROOT)
    fake.newest(61)
    tree.refresh()
    assert {50, 60} == set(tree.members)
