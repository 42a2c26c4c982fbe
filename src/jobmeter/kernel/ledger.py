"""Adds up counters of a tree of processes that come and go.

The kernel adds what a process used to the parent that waits for it. So the sum
over the live processes, each with its waited-for children, holds whatever ended
in the usual way. What the kernel drops (a child of a parent that ignores
SIGCHLD) is kept here, as last seen: per process, and only then summed.
"""

from __future__ import annotations

from typing import NamedTuple

from jobmeter.kernel.procfs import Identity


class Account(NamedTuple):
    """What one process used, children it waited for included."""

    parent: int
    faults: int  # page faults with children's: never 0 for a process that ran
    children_faults: int
    used: tuple[int, ...]


class Ledger:
    """Totals that never fall, whoever exits."""

    def __init__(self) -> None:
        self._accounts: dict[Identity, Account] = {}
        self._kept: tuple[int, ...] = ()
        self._totals: tuple[int, ...] = ()

    def update(self, present: dict[Identity, Account]) -> tuple[int, ...]:
        """Take the accounts of one moment, parents read before their children; return the totals."""
        gone = {who: account for who, account in self._accounts.items() if who not in present}
        if gone:
            self._keep_what_was_dropped(gone, present)
        self._accounts = present
        sums = _add(self._kept, *(account.used for account in present.values()))
        # A child that was reaped between reading its parent and itself is missing this once.
        self._totals = tuple(map(max, sums, self._totals)) if self._totals else sums
        return self._totals

    def _keep_what_was_dropped(self, gone: dict[Identity, Account], present: dict[Identity, Account]) -> None:
        """Keep the use of those whose nearest living ancestor did not take it over."""
        living = {who.pid: who for who in present}
        root = next(iter(present), None)
        parents = {who.pid: account.parent for who, account in gone.items()}
        heirs: dict[Identity, list[Account]] = {}
        for account in gone.values():
            parent = account.parent
            for _ in parents:
                if parent in living:
                    break
                parent = parents.get(parent, 0)
            heir = living.get(parent, root)
            if heir is not None:
                heirs.setdefault(heir, []).append(account)
            else:
                self._kept = _add(self._kept, account.used)
        left = {who: self._inherited(who, present[who]) for who in (*heirs, *([root] if root else []))}
        astray: list[Account] = []
        for who, accounts in heirs.items():
            dropped, left[who] = _not_fitting(accounts, left[who])
            astray += dropped
        # One whose parent ended, and is there still to be waited for, went to the root that adopts orphans.
        dropped, _ = _not_fitting(astray, left[root] if root else 0)
        self._kept = _add(self._kept, *(account.used for account in dropped))

    def _inherited(self, who: Identity, account: Account) -> int:
        """The page faults that a process took over from children since the last time."""
        before = self._accounts.get(who)
        return account.children_faults - (before.children_faults if before else 0)


def _not_fitting(accounts: list[Account], inherited: int) -> tuple[list[Account], int]:
    """Those whose faults do not fit into what an heir took over, the largest first, and what is left of that."""
    dropped = []
    for account in sorted(accounts, key=lambda account: account.faults, reverse=True):
        if account.faults <= inherited:
            inherited -= account.faults
        else:
            dropped.append(account)
    return dropped, inherited


def _add(*vectors: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(vector for vector in vectors if vector))))
