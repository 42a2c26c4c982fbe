from __future__ import annotations

import subprocess
import sys
import time

import pytest

from jobmeter.kernel.ledger import Account, Ledger
from jobmeter.kernel.machine import THIS_MACHINE, TICKS_PER_SECOND
from jobmeter.kernel.procfs import Identity
from jobmeter.kernel.tree import Tree

ROOT, PARENT, CHILD, OTHER = (Identity(pid, start) for pid, start in ((1, 1), (2, 10), (3, 20), (4, 30)))


def account(parent: int, used: int, *, faults: int, of_children: int = 0) -> Account:
    """`faults` are the process's own."""
    return Account(parent, faults + of_children, of_children, (used,))


def test_the_total_is_the_sum_over_the_living() -> None:
    ledger = Ledger()
    assert (15,) == ledger.update({ROOT: account(0, 5, faults=10), CHILD: account(1, 10, faults=100)})


def test_a_child_folded_into_its_parent_is_not_counted_twice() -> None:
    ledger = Ledger()
    ledger.update({ROOT: account(0, 5, faults=10), CHILD: account(1, 10, faults=100)})
    assert (17,) == ledger.update({ROOT: account(0, 5 + 12, faults=10, of_children=110)})


def test_a_child_nobody_waited_for_is_kept_as_last_seen() -> None:
    ledger = Ledger()
    ledger.update({ROOT: account(0, 5, faults=10), CHILD: account(1, 10, faults=100)})
    after = ledger.update({ROOT: account(0, 6, faults=11)})
    later = ledger.update({ROOT: account(0, 9, faults=12)})
    assert ((16,), (19,)) == (after, later)


def test_a_chain_that_ended_is_found_again_in_its_nearest_living_ancestor() -> None:
    ledger = Ledger()
    ledger.update(
        {ROOT: account(0, 0, faults=10), PARENT: account(1, 20, faults=50), CHILD: account(2, 30, faults=100)}
    )
    assert (50,) == ledger.update({ROOT: account(0, 50, faults=10, of_children=150)})


def test_an_orphan_is_inherited_by_the_root_that_adopted_it() -> None:
    ledger = Ledger()
    ledger.update(
        {ROOT: account(0, 0, faults=10), PARENT: account(1, 20, faults=50), CHILD: account(2, 30, faults=100)}
    )
    adopted = {ROOT: account(0, 20, faults=10, of_children=50), CHILD: account(1, 35, faults=120)}
    first = ledger.update(adopted)
    second = ledger.update({ROOT: account(0, 60, faults=10, of_children=175)})
    assert ((55,), (60,)) == (first, second)


def test_a_parent_that_was_waited_for_is_not_kept_for_the_child_it_dropped() -> None:
    ledger = Ledger()
    ledger.update(
        {ROOT: account(0, 0, faults=10), PARENT: account(1, 20, faults=50), CHILD: account(2, 30, faults=100)}
    )
    # The parent ignored SIGCHLD: the kernel dropped the child's 30 and handed on the parent's 20.
    assert (50,) == ledger.update({ROOT: account(0, 20, faults=10, of_children=50)})


def test_an_orphan_of_a_parent_that_ended_and_is_not_waited_for_yet_went_to_the_root() -> None:
    ledger = Ledger()
    alive = {ROOT: account(0, 0, faults=10), PARENT: account(1, 20, faults=50), CHILD: account(2, 30, faults=100)}
    ledger.update(alive)
    # The parent is a zombie: it is listed, and the root has reaped the child.
    zombie = {ROOT: account(0, 30, faults=10, of_children=100), PARENT: account(1, 20, faults=50)}
    assert (50,) == ledger.update(zombie)
    assert (50,) == ledger.update({ROOT: account(0, 50, faults=10, of_children=150)})


def test_of_two_children_only_the_dropped_one_is_kept() -> None:
    ledger = Ledger()
    ledger.update({ROOT: account(0, 0, faults=10), CHILD: account(1, 30, faults=40), OTHER: account(1, 7, faults=100)})
    assert (37,) == ledger.update({ROOT: account(0, 7, faults=10, of_children=100)})


def test_totals_never_fall_when_a_child_was_reaped_between_two_reads() -> None:
    ledger = Ledger()
    ledger.update({ROOT: account(0, 5, faults=10), CHILD: account(1, 10, faults=100)})
    # The parent was read before it waited, the child after: this once it is in neither.
    missing = ledger.update({ROOT: account(0, 3, faults=10), CHILD: account(1, 2, faults=100)})
    again = ledger.update({ROOT: account(0, 9, faults=10), CHILD: account(1, 8, faults=100)})
    assert ((15,), (17,)) == (missing, again)


def test_a_reused_pid_is_another_account() -> None:
    ledger = Ledger()
    ledger.update({ROOT: account(0, 0, faults=10), CHILD: account(1, 10, faults=100)})
    reborn = Identity(CHILD.pid, CHILD.start + 1)
    assert (14,) == ledger.update({ROOT: account(0, 0, faults=10), reborn: account(1, 4, faults=20)})


def test_when_everyone_is_gone_the_totals_stay() -> None:
    ledger = Ledger()
    ledger.update({ROOT: account(0, 5, faults=10), CHILD: account(1, 10, faults=100)})
    assert (15,) == ledger.update({})


def test_every_counter_of_an_account_is_added_up_alone() -> None:
    ledger = Ledger()
    ledger.update({ROOT: Account(0, 1, 0, (1, 10, 100)), CHILD: Account(1, 5, 0, (2, 20, 200))})
    assert (3, 30, 400) == ledger.update({ROOT: Account(0, 1, 0, (1, 10, 200))})


FAMILY = """
import os, signal, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def child(seconds):
    pid = os.fork()
    if pid == 0:
        burn(seconds); print('burnt', flush=True); os.kill(os.getpid(), signal.SIGSTOP); os._exit(0)
    return pid
waited = child(0.2)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
dropped = child(0.3)
input()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
os.kill(waited, signal.SIGCONT); os.waitpid(waited, 0)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.kill(dropped, signal.SIGCONT)
try:
    os.waitpid(dropped, 0)
except ChildProcessError:
    pass
print('over', flush=True)
input()
"""


@pytest.mark.skipif(not THIS_MACHINE.has_proc(), reason="no /proc here")
def test_on_this_kernel_a_waited_for_and_a_dropped_child_count_once_each() -> None:
    with subprocess.Popen([sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as family:
        assert family.stdin is not None
        assert family.stdout is not None
        tree, ledger = Tree(THIS_MACHINE, family.pid), Ledger()
        for _ in range(2):
            family.stdout.readline()
        _await_stopped(tree, 2)  # a SIGCONT that comes before would be lost
        before = _update(ledger, tree)
        family.stdin.write(b"\n")
        family.stdin.flush()
        family.stdout.readline()
        after = _update(ledger, tree)
        family.kill()
        tree.close()
    # 0.5 s were burnt; each of three processes may lack a tick of user and one of system time.
    assert 0.44 <= before < 0.7
    assert before <= after < before + 0.05


def _await_stopped(tree: Tree, count: int) -> None:
    while True:
        tree.refresh()
        if sum(process.stat.state == "T" for process in tree.members.values()) == count:
            return
        time.sleep(0.01)


def _update(ledger: Ledger, tree: Tree) -> float:
    tree.refresh()
    accounts = {}
    for process in (tree.root, *tree.members.values()):
        s = process.stat
        accounts[process.identity] = Account(
            s.ppid,
            s.minor_faults + s.children_minor_faults,
            s.children_minor_faults,
            (s.user + s.system + s.children_user + s.children_system,),
        )
    return ledger.update(accounts)[0] / TICKS_PER_SECOND
