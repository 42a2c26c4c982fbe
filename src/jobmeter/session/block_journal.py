"""The journal of the blocks of this process: one file per store for all blocks, because one process writes them."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Mapping

from jobmeter.journal.writer import JournalFile, journal_path, shared_journal
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_stat
from jobmeter.light_typing import TYPE_CHECKING, Any, NamedTuple
from jobmeter.record import build
from jobmeter.session.block_record import DESCRIBED

if TYPE_CHECKING:
    from jobmeter.record.types import Record, RunIdentity, Writer

_MOST_RUNS = 20_000
"""The most runs in one file. A program that runs for months begins new files, so that `gc` can remove old ones."""
_IDENTITY = ("id", "name", "command", "cwd", "labels", "host", "user", "started", "requirement")


class JournalOwner(NamedTuple):
    """The process that writes the missing records if this process is killed. It finds the files by their names."""

    writer: Writer
    name: str  # the files are `NAME-1`, `NAME-2` and so on


class BegunJournal:
    """The journal of a run whose header is already written. See `RunJournal`."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self.path = file.path
        self.append = file.append

    @property
    def failed(self) -> str | None:
        return self._file.failed

    def begin(self, run_id: str, header: Mapping[str, Any]) -> None:
        """Do nothing: the header is already written."""


class BlockJournal:
    """The open file of one store. Once another file has replaced it, it is closed when its last run ends."""

    def __init__(self, store: str, run_id: str, owner: JournalOwner | None) -> None:
        """Raises StoreError if the store cannot be written."""
        self.writer = process_writer(os.getpid()) if owner is None else owner.writer
        shared: dict[str, Any] = {
            "host": build.this_host(THIS_MACHINE),
            "user": build.this_user(),
            "measurements": DESCRIBED,
            "writer": self.writer,
        }
        name = f"{run_id}-blocks" if owner is None else _free_name(store, owner.name)
        self.file: JournalFile = shared_journal(store, name, shared)
        self.runs = self.open_runs = 0
        self.is_current = True

    @property
    def is_usable(self) -> bool:
        return self.runs < _MOST_RUNS and not self.file.is_removed

    def begin(self, identity: RunIdentity) -> None:
        """Write the header of a run."""
        self.file.begin(identity["id"], self._header(identity))

    def write_whole(self, record: Record) -> None:
        """Write a run that has ended: header and record together."""
        self.file.begin(record["id"], self._header(record), {"record": record})

    def _header(self, identity: RunIdentity) -> dict[str, Any]:
        """The header: the part of a record that is known at the start of the run."""
        header = {name: identity[name] for name in _IDENTITY if name in identity}  # type: ignore[literal-required]
        return {**header, "measurements": DESCRIBED, "writer": self.writer}

    def close_if_unused(self) -> None:
        if not self.is_current and self.open_runs == 0:
            self.file.close()


class BlockJournals:
    """The journals of this process, by store. A forked child begins with none, because a file has one writer."""

    def __init__(self) -> None:
        self._by_store: dict[str, BlockJournal] = {}
        self._lock = threading.Lock()
        self._owner: JournalOwner | None = None

    def belong_to(self, owner: JournalOwner) -> None:
        """Name new files after `owner`, and record it as their writer. For a process whose parent supervises it."""
        self._owner = owner

    def open(self, store: str, run_id: str) -> BlockJournal:
        """The journal for another run; a new file is named after the run or owner. Raises StoreError if that fails."""
        with self._lock:
            journal = self._by_store.get(store)
            if journal is None or not journal.is_usable:
                previous, journal = journal, BlockJournal(store, run_id, self._owner)
                self._by_store[store] = journal
                if previous is not None:
                    previous.is_current = False
                    previous.close_if_unused()
            journal.runs += 1
            journal.open_runs += 1
            return journal

    def close(self, journal: BlockJournal) -> None:
        """Note that a run of this journal has ended, and close the file if it is not needed any more."""
        with self._lock:
            journal.open_runs -= 1
            journal.close_if_unused()

    def forget(self) -> None:
        for journal in self._by_store.values():
            journal.file.close()
        self.__init__()  # type: ignore[misc]  # the lock may be held by a thread that stayed with the parent


BLOCK_JOURNALS = BlockJournals()
os.register_at_fork(after_in_child=BLOCK_JOURNALS.forget)


def owned_files(store: str, name: str) -> Iterator[str]:
    """The files `name-1`, `name-2` and so on of a process whose journals have an owner, oldest first."""
    for number in itertools.count(1):
        path = journal_path(store, f"{name}-{number}")
        if not os.path.exists(path):
            return
        yield path


def _free_name(store: str, name: str) -> str:
    return f"{name}-{sum(1 for _ in owned_files(store, name)) + 1}"


def process_writer(pid: int) -> Writer:
    """Describe a process as the writer in the header of a journal."""
    writer: Writer = {"pid": pid, "root": pid, "job": pid}
    try:
        # Pids are reused: with its start time, a reader can check later whether the writer still runs.
        writer["start"] = writer["root_start"] = writer["job_start"] = read_stat(THIS_MACHINE, pid).start
    except (OSError, ValueError):
        pass  # no /proc here
    return writer
