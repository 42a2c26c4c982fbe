"""Who belongs to a job without a shepherd, by a /proc that is written here."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.launch.members import Members

SHEPHERD, MAIN = Identity(100, 50), Identity(101, 51)


class Processes:
    """A folder like /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine = Machine(proc=str(folder), sys=str(folder))

    def add(self, pid: int, ppid: int, *, start: int = 60, session: int = 1, state: str = "S") -> None:
        (self.folder / str(pid)).mkdir(exist_ok=True)
        zeros = "0 " * 13  # the flags, and twelve more
        (self.folder / str(pid) / "stat").write_text(f"{pid} (p) {state} {ppid} 1 {session} 0 0 {zeros}{start} 0 0\n")

    def remove(self, pid: int) -> None:
        (self.folder / str(pid) / "stat").unlink()


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    made = Processes(tmp_path)
    made.add(MAIN.pid, 1, start=MAIN.start)
    return made


def running(members: Members) -> set[int]:
    members.refresh()
    return set(members.running_pids(with_root=False))


def test_descendants_of_the_known_are_members_and_stay_so_when_orphaned(processes: Processes) -> None:
    processes.add(110, MAIN.pid)
    processes.add(111, 110)
    processes.add(112, 1)  # a stranger
    members = Members(processes.machine, SHEPHERD, [MAIN])
    assert {MAIN.pid, 110, 111} == running(members)
    processes.remove(110)
    processes.add(111, 1)
    assert {MAIN.pid, 111} == running(members)


def test_a_pid_that_another_process_has_by_now_is_no_member(processes: Processes) -> None:
    processes.add(MAIN.pid, 1, start=99)
    assert set() == running(Members(processes.machine, SHEPHERD, [MAIN]))


def test_children_of_an_adopter_are_members_unless_they_are_older_than_the_shepherd(processes: Processes) -> None:
    processes.add(90, 7, start=SHEPHERD.start - 1)
    processes.add(120, 7)
    assert {MAIN.pid, 120} == running(Members(processes.machine, SHEPHERD, [MAIN], adopter=7))


def test_the_shepherds_session_is_the_jobs_while_one_of_the_job_is_in_it(processes: Processes) -> None:
    processes.add(MAIN.pid, 1, start=MAIN.start, session=SHEPHERD.pid)
    processes.add(130, 1, session=SHEPHERD.pid)
    members = Members(processes.machine, SHEPHERD, [MAIN])
    assert {MAIN.pid, 130} == running(members)
    processes.remove(MAIN.pid)
    processes.add(131, 1, session=SHEPHERD.pid)
    assert {130, 131} == running(members)


@pytest.mark.parametrize("leader", [True, False])
def test_a_session_of_that_number_is_not_the_jobs_if_nobody_of_the_job_was_seen_in_it(
    processes: Processes, leader: bool
) -> None:
    processes.remove(MAIN.pid)
    processes.add(130, 1, session=SHEPHERD.pid)
    if leader:
        processes.add(SHEPHERD.pid, 1, start=SHEPHERD.start + 40, session=SHEPHERD.pid)
    assert set() == running(Members(processes.machine, SHEPHERD, [MAIN]))


def test_who_is_in_the_cgroup_is_a_member(processes: Processes, tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("140\n")
    processes.add(140, 1)
    assert {MAIN.pid, 140} == running(Members(processes.machine, SHEPHERD, [MAIN], group=str(tmp_path)))
    assert {MAIN.pid} == running(Members(processes.machine, SHEPHERD, [MAIN], group=f"{tmp_path}/none"))


def test_zombies_do_not_run(processes: Processes) -> None:
    processes.add(150, MAIN.pid, state="Z")
    assert {MAIN.pid} == running(Members(processes.machine, SHEPHERD, [MAIN]))
