"""Sums the counters of a process tree in which processes start and end.

When a parent waits for a process, the kernel adds the usage of the process to the parent.
So the sum over the live processes, each with the children it waited for, includes all
ended processes that were waited for. Usage that the kernel drops (of a child whose parent
ignores SIGCHLD) is stored here, as last read: per process, and only then summed.
"""

from __future__ import annotations

from jobmeter.kernel.procfs import Identity
from jobmeter.light_typing import NamedTuple


class Account(NamedTuple):
    """The usage of one process, including the children it waited for."""

    parent: int
    faults: int  # page faults, including the children's: never 0 for a process that ran
    children_faults: int
    used: tuple[int, ...]


class Ledger:
    """Totals that never fall when a process exits."""

    def __init__(self) -> None:
        self._accounts: dict[Identity, Account] = {}
        self._dropped_sums: tuple[int, ...] = ()
        self._totals: tuple[int, ...] = ()

    def update(self, present: dict[Identity, Account]) -> tuple[int, ...]:
        """Take the accounts of all processes at one moment, parents read before their children; return the totals."""
        vanished = {identity: account for identity, account in self._accounts.items() if identity not in present}
        if vanished:
            self._add_dropped(vanished, present)
        self._accounts = present
        sums = _add(self._dropped_sums, *(account.used for account in present.values()))
        # A child that was reaped after its parent was read, but before it was read itself, is missing from this sum.
        self._totals = tuple(map(max, sums, self._totals)) if self._totals else sums
        return self._totals

    def _add_dropped(self, vanished: dict[Identity, Account], present: dict[Identity, Account]) -> None:
        """Store the usage of those vanished processes that no living ancestor took over."""
        living = {identity.pid: identity for identity in present}
        root = next(iter(present), None)
        parents = {identity.pid: account.parent for identity, account in vanished.items()}
        heirs: dict[Identity, list[Account]] = {}
        for account in vanished.values():
            parent = account.parent
            for _ in parents:
                if parent in living:
                    break
                parent = parents.get(parent, 0)
            heir = living.get(parent, root)
            if heir is not None:
                heirs.setdefault(heir, []).append(account)
            else:
                self._dropped_sums = _add(self._dropped_sums, account.used)
        left = {
            identity: self._inherited(identity, present[identity]) for identity in (*heirs, *([root] if root else []))
        }
        astray: list[Account] = []
        for identity, accounts in heirs.items():
            dropped, left[identity] = _not_fitting(accounts, left[identity])
            astray += dropped
        # If the parent has ended but is still a zombie, the process went to the root, which adopts orphans.
        dropped, _ = _not_fitting(astray, left[root] if root else 0)
        self._dropped_sums = _add(self._dropped_sums, *(account.used for account in dropped))

    def _inherited(self, identity: Identity, account: Account) -> int:
        """The page faults that a process took over from its children since the last update."""
        before = self._accounts.get(identity)
        return account.children_faults - (before.children_faults if before else 0)


def _not_fitting(accounts: list[Account], inherited: int) -> tuple[list[Account], int]:
    """The accounts whose faults, largest first, do not fit into the inherited ones; and what is left of those."""
    dropped = []
    for account in sorted(accounts, key=lambda account: account.faults, reverse=True):
        if account.faults <= inherited:
            inherited -= account.faults
        else:
            dropped.append(account)
    return dropped, inherited


def _add(*vectors: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(vector for vector in vectors if vector))))
