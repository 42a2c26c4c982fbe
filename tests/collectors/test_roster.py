from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from jobmeter.collectors.roster import LISTED, Roster
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine
from jobmeter.kernel.procfs import Identity, Stat
from jobmeter.kernel.tree import Process


def process(pid: int, *, start: int = 0, ticks: int = 0, rss: int = 0, comm: bytes = b"sh") -> Process:
    return Process(Identity(pid, start), stat(start=start, ticks=ticks, rss=rss, comm=comm))


def stat(*, start: int = 0, ticks: int = 0, rss: int = 0, comm: bytes = b"sh") -> Stat:
    """Ticks are user and system time in equal parts; the 99 are of children, who are listed themselves."""
    return Stat(comm, "S", 1, 0, 0, 0, 0, ticks // 2, ticks - ticks // 2, 99, 99, 1, start, 0, rss)


class Clock:
    """Seconds since boot, as the test says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def roster(proc: Path, clock: Clock) -> Roster:
    return Roster(Machine(proc=str(proc)), {1: "the command as given"}, announced=1, clock=clock)


def command(proc: Path, pid: int, content: bytes) -> None:
    (proc / str(pid)).mkdir(exist_ok=True)
    (proc / str(pid) / "cmdline").write_bytes(content)


def test_a_process_is_listed_with_its_own_use_and_the_largest_size_it_was_seen_at(
    proc: Path, roster: Roster, clock: Clock
) -> None:
    command(proc, 42, b"python\0train.py\0")
    trainer = process(42, start=1005 * TICKS_PER_SECOND)
    clock.now = 1015.0
    for ticks, rss in ((10, 100), (30, 900), (50, 300)):
        trainer.take(trainer.stat._replace(user=ticks, system=ticks, rss=rss))
        roster.update([trainer], [])
    [use] = roster.listed()
    assert (trainer.identity, "python train.py", 100 / TICKS_PER_SECOND, 900, 1) == (
        use.identity,
        use.cmd,
        use.cpu_seconds,
        use.rss_peak_bytes,
        use.together,
    )
    assert 10.0 == use.seconds


def lived(roster: Roster) -> dict[int, float]:
    return {use.identity.pid: use.seconds for use in roster.listed()}


def test_what_a_process_did_before_the_measurement_began_is_left_out(roster: Roster, clock: Clock) -> None:
    old = process(42, start=100 * TICKS_PER_SECOND, ticks=500)
    roster.begin([old])
    clock.now = 1003.0
    old.take(stat(start=100 * TICKS_PER_SECOND, ticks=520))
    roster.update([old], [])
    [use] = roster.listed()
    assert (3.0, 20 / TICKS_PER_SECOND) == (use.seconds, use.cpu_seconds)


def test_a_process_lives_on_while_nothing_ran_and_ends_in_the_middle_of_the_gap(roster: Roster, clock: Clock) -> None:
    sleeper, other = process(42), process(43)
    roster.update([sleeper, other], [])
    clock.now = 1006.0
    roster.nothing_ran()
    assert {42: 6.0, 43: 6.0} == lived(roster)
    clock.now = 1008.0
    roster.update([other], [sleeper])
    assert {42: 7.0, 43: 8.0} == lived(roster)


def test_a_zombie_ended_when_it_was_first_seen_as_one(roster: Roster, clock: Clock) -> None:
    roster.update([child := process(42)], [])
    clock.now = 1002.0
    child.take(child.stat._replace(state="Z"))
    roster.update([child], [])
    for clock.now in (1010.0, 1020.0):
        roster.update([child], [])
    assert ({42: 1.0}, []) == (lived(roster), roster.live())
    roster.update([], [child])
    assert {42: 1.0} == lived(roster)


def test_a_process_that_came_and_became_a_zombie_between_two_looks_ended_after_it_began(
    roster: Roster, clock: Clock
) -> None:
    clock.now = 1010.0
    child = process(42, start=1008 * TICKS_PER_SECOND)
    child.take(child.stat._replace(state="Z"))
    roster.update([child], [])
    assert {42: 1.0} == lived(roster)


def test_the_end_of_the_main_process_is_the_moment_of_the_look_and_that_of_its_last_children(
    roster: Roster, clock: Clock
) -> None:
    main, child = process(1), process(42)
    roster.update([main, child], [])
    clock.now = 1001.0
    main.take(main.stat._replace(state="Z"))
    roster.update([main], [child])
    clock.now = 1005.0
    roster.update([], [main])
    assert {1: 1.0, 42: 1.0} == lived(roster)


def test_a_command_line_is_read_anew_when_the_process_executes_another_program(proc: Path, roster: Roster) -> None:
    shell = process(42, comm=b"sh")
    command(proc, 42, b"sh\0-c\0exec train\0")
    roster.update([shell], [])
    before = roster.cmd(shell)
    command(proc, 42, b"train\0")
    roster.update([shell], [])
    same_name = roster.cmd(shell)
    shell.take(shell.stat._replace(comm=b"train"))
    roster.update([shell], [])
    assert ("sh -c exec train", "sh -c exec train", "train") == (before, same_name, roster.cmd(shell))


def test_a_command_that_is_known_is_not_read(proc: Path, roster: Roster) -> None:
    command(proc, 1, b"something\0else\0")
    roster.update([main := process(1)], [])
    assert "the command as given" == roster.cmd(main)


def test_a_process_that_ended_before_its_command_was_read_has_its_name(roster: Roster) -> None:
    roster.update([gone := process(42, comm=b"a) R 1 (b c")], [])
    assert "[a) R 1 (b c]" == roster.cmd(gone)


def test_two_processes_of_one_pid_are_two(roster: Roster) -> None:
    first, second = process(42, start=100, ticks=10), process(42, start=200, ticks=20)
    roster.update([first], [])
    roster.update([second], [first])
    assert [second.identity, first.identity] == [use.identity for use in roster.listed()]


def test_only_who_lives_is_live_and_the_dead_stay_listed(roster: Roster) -> None:
    first, second = process(41, ticks=10), process(42, ticks=20)
    roster.update([first, second], [])
    roster.update([first], [second])
    assert ([41], [42, 41]) == (
        [use.identity.pid for use in roster.live()],
        [use.identity.pid for use in roster.listed()],
    )


def test_who_vanished_unseen_is_not_made_up(roster: Roster) -> None:
    roster.update([], [process(42)])
    assert [] == roster.listed()


def test_the_costliest_come_first_by_cpu_and_then_by_size(roster: Roster) -> None:
    roster.update([process(1, ticks=5, rss=1), process(2, ticks=9, rss=1), process(3, ticks=5, rss=7)], [])
    assert [2, 3, 1] == [use.identity.pid for use in roster.listed()]


@pytest.mark.parametrize("count", [LISTED, LISTED + 1, 4 * LISTED, 1000])
def test_of_many_the_costliest_are_listed_and_the_rest_is_one_entry_with_nothing_lost(
    roster: Roster, count: int
) -> None:
    everyone = [process(pid, ticks=(pid * 7919) % 1009, rss=pid) for pid in range(1, count + 1)]
    # They come and go ten at a time.
    for begin in range(0, count, 10):
        now = everyone[begin : begin + 10]
        roster.update(now, everyone[max(begin - 10, 0) : begin])
    listed = roster.listed()
    costliest = sorted((p.stat.user + p.stat.system for p in everyone), reverse=True)[:LISTED]
    assert [ticks / TICKS_PER_SECOND for ticks in costliest] == [use.cpu_seconds for use in listed[:LISTED]]
    assert (count, min(count, LISTED + 1)) == (sum(use.together for use in listed), len(listed))
    total = sum(p.stat.user + p.stat.system for p in everyone) / TICKS_PER_SECOND
    assert total == pytest.approx(sum(use.cpu_seconds for use in listed), abs=0.02)
    assert count == max(use.rss_peak_bytes for use in listed)
    if count > LISTED:
        assert (0, f"{count - LISTED} more") == (listed[-1].identity.pid, listed[-1].cmd)


def test_the_dead_are_kept_in_bounded_memory(roster: Roster) -> None:
    def come_and_go(pids: range) -> int:
        for pid in pids:
            newcomer = process(pid, ticks=pid)
            roster.update([newcomer], [])
            roster.update([], [newcomer])
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        few, many = come_and_go(range(1, 1001)), come_and_go(range(1001, 9001))
    finally:
        tracemalloc.stop()
    # 8000 entries kept would be some megabytes.
    assert many - few < 50_000
