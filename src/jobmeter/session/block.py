"""A block: a piece of the calling program, measured from its start to its stop.

A block that ends within some milliseconds is never sampled: its record is made from what is read at its start and its
end. A longer block becomes a session like any other job, with a `BlockJob` that has nothing to launch.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from jobmeter.collectors.contract import Readings, Target
from jobmeter.errors import JobmeterError, UsageError
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.meter.watch import Window
from jobmeter.model import Outcome, Requirement, Status
from jobmeter.record import build
from jobmeter.redaction import Redaction, redaction
from jobmeter.session.block_counts import BlockCounts
from jobmeter.session.block_job import BlockJob
from jobmeter.session.block_journal import BLOCK_JOURNALS, BegunJournal, BlockJournal
from jobmeter.session.block_record import (
    UNNAMED,
    UnwatchedBlock,
    block_identity,
    redacted_command,
    unwatched_record,
)
from jobmeter.session.measuring import JobEnd, MeasureOptions, OpenJob, ignore
from jobmeter.session.open_blocks import OPEN_BLOCKS
from jobmeter.session.session import Session
from jobmeter.working_directory import present_directory

if TYPE_CHECKING:
    from jobmeter.record.types import Figure, Labels, Provenance, Record, RunIdentity

_WELL = Outcome(Status.COMPLETED, 0)


class Block:
    """Measures one piece of this program. `start` and `stop` it once each."""

    counts: BlockCounts
    """What the block used. Set by `start`."""

    def __init__(
        self,
        options: MeasureOptions,
        requirement: Requirement,
        *,
        stepped: bool = False,
        on_window: Callable[[Window], None] = ignore,
        live: bool = False,
        announced: bool = False,
        own_thread: bool = False,
        interleaved: bool = False,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        """Raises UsageError if an option is not valid. `stepped`: only the time within steps counts.

        `live`: sample the block from its start on, however short it is. `announced`: write its header to the journal at
        its start, so that it is not lost if the process is killed at once. `own_thread`: other threads do not belong to
        the block, even if they have no block. `interleaved`: other tasks of its thread run in between.
        """
        self.id = build.new_run_id()
        self.is_watched = False
        self._stepped = stepped
        self._own_thread = own_thread
        self._interleaved = interleaved
        self._options = options
        self._requirement = requirement
        self._on_window = on_window
        self._warn = warn
        self._lock = threading.RLock()
        self._process = 0
        self._journal: BlockJournal | None = None
        self._outcome: Outcome | None = None
        self._raised: str | None = None
        self._stopped_at: float | None = None
        self._why_not_watched: str | None = None
        self._session: Session | None = None
        self._is_eager = live or bool(options.measurements)
        self._is_announced = announced and not self._is_eager
        self._last_labels: Labels = {}
        if self._is_eager:
            self._make_session()  # refuses invalid options here, not when the block is first sampled

    def start(self) -> None:
        """Begin to count. Raises StoreError if the store cannot be written; then nothing is begun."""
        if self._process:
            raise UsageError("this block was started already; measure each piece of work with one of its own")
        if self._options.store is not None:
            self._journal = BLOCK_JOURNALS.open(self._options.store, self.id)
        self._process = os.getpid()
        self.counts = BlockCounts(stepped=self._stepped, own_thread=self._own_thread, interleaved=self._interleaved)
        if self._is_announced and self._journal is not None:
            self._journal.begin(self._identity())
        OPEN_BLOCKS.schedule()
        OPEN_BLOCKS.add(self)
        if self._is_eager:
            try:
                self.watch()
            except BaseException:
                self._abandon()
                raise

    def stop(self, outcome: Outcome = _WELL, raised: str | None = None, labels: Labels | None = None) -> Record:
        """Stop counting, and return the run record. `labels`: further labels, known only at the end.

        Raises UsageError in a process that was forked from the block's process.
        """
        self._end(outcome, raised, labels or {})
        with self._lock:
            try:
                return self._conclude()
            finally:
                self._release()

    def leave(self) -> None:
        """Stop counting and write no record: the owner of the journal writes it. See `BlockJournals.belong_to`."""
        self.watch()
        self._end(_WELL, None, {})
        with self._lock:
            try:
                if self._session is not None:
                    self._session.leave()
            finally:
                self._release()

    def _end(self, outcome: Outcome, raised: str | None, labels: Labels) -> None:
        if self._process != os.getpid():
            raise UsageError(
                f"this block was started in process {self._process}: a forked process measures blocks of its own"
                if self._process
                else "this block was not started"
            )
        if self._outcome is not None:
            raise UsageError("this block was stopped already")
        self._stopped_at = time.monotonic()
        OPEN_BLOCKS.remove(self)
        with self._lock:
            self._outcome, self._raised, self._last_labels = outcome, raised, labels
            self.counts.freeze()

    @property
    def journal_path(self) -> str | None:
        """The file that the run is stored in; None if it is not stored."""
        return self._journal.file.path if self._journal is not None else None

    @property
    def belongs_here(self) -> bool:
        """Whether this process started the block; False in a process that was forked since."""
        return self._process == os.getpid()

    def so_far(self) -> Record:
        """The record until now, with the status `running`."""
        with self._lock:
            self.watch()
            if self._session is None:
                raise JobmeterError(f"this block is not sampled: {self._why_not_watched}")
            return self._session.record_so_far()

    def watch(self) -> None:
        """Make the block a session, which is sampled and in the journal. Called by the meter for a block that lasts."""
        with self._lock:
            if self.is_watched or self._outcome is not None:
                return
            self.is_watched = True
            try:
                session = self._make_session()
                self.counts.follow_processes(self._redaction)
                self.counts.clock.note_stolen()
                session.start()
                self._session = session
            except Exception as error:  # whatever fails here, the measured program goes on
                if self._is_eager and isinstance(error, JobmeterError):
                    raise
                self._why_not_watched = f"{type(error).__name__}: {error}"

    def _conclude(self) -> Record:
        if self._session is not None:
            return self._session.wait()
        record = self._record_unwatched()
        if self._journal is not None:
            if self._is_announced:
                self._journal.file.append(self.id, {"record": record})
            else:
                self._journal.write_whole(record)
            if self._journal.file.failed is not None:
                self._warn(f"the journal is incomplete: {self._journal.file.failed}")
        return record

    def _record_unwatched(self) -> Record:
        """The record of a block that was read at its start and its end alone."""
        readings, outcome = self.counts.final, self._outcome
        assert readings is not None, "it was not stopped"
        assert outcome is not None, "it was not stopped"
        provenance: Provenance = {}
        end = self.job_end(provenance)
        return unwatched_record(self._as_unwatched(readings, self.wall_seconds, end), outcome, provenance)

    def _as_unwatched(self, readings: Readings, wall_seconds: float, end: JobEnd) -> UnwatchedBlock:
        return UnwatchedBlock(
            self._identity(),
            self._options.interval,
            self.counts.began,
            wall_seconds,
            readings,
            self.counts.resident_at_ends(),
            self.counts.qualities(),
            end,
            self._why_not_watched,
        )

    def usage_so_far(self) -> dict[str, Figure]:
        """The headline figures until now. Cheap: nothing is sampled for it."""
        with self._lock:
            readings = {**self.counts.counters(), **self.counts.marks()}
            block = self._as_unwatched(readings, self.seconds_so_far, JobEnd())
            return unwatched_record(block, Outcome(Status.RUNNING), {})["usage"]

    @property
    def seconds_so_far(self) -> float:
        return time.monotonic() - self.counts.started

    def _identity(self) -> RunIdentity:
        command = list(redacted_command(self._redaction))
        return block_identity(self.id, self._options, self._requirement, self.counts.began, command)

    def _release(self) -> None:
        self.counts.close()
        if self._journal is not None:
            BLOCK_JOURNALS.close(self._journal)

    def _abandon(self) -> None:
        """Release a block that could not be started."""
        self._outcome = Outcome(Status.FAILED)
        OPEN_BLOCKS.remove(self)
        self._release()

    # The block as the job of a session.

    def open_job(self) -> OpenJob:
        """The block as an open job, for the session. It already runs."""
        target = Target(root=self._process, main=self._process, root_is_job=True, block=self.counts)
        command = list(redacted_command(self._redaction))
        return OpenJob(
            target, command, present_directory(), self._requirement, name=UNNAMED, started=self.counts.started
        )

    def job_end(self, provenance: Provenance) -> JobEnd:
        """How the block ended. Adds the exception that it raised, if any, to `provenance`."""
        if self._raised is not None:
            provenance["raised"] = self._raised
        return JobEnd(left_running=self.counts.left_running, wall_seconds=self.wall_seconds, labels=self._last_labels)

    @property
    def outcome(self) -> Outcome:
        assert self._outcome is not None, "it was not stopped"
        return self._outcome

    @property
    def wall_seconds(self) -> float:
        assert self._stopped_at is not None, "it was not stopped"
        return self._stopped_at - self.counts.started

    @property
    def _redaction(self) -> Redaction:
        return redaction(None if self._options.redact is None else tuple(self._options.redact))

    def _make_session(self) -> Session:
        journal = self._journal.file if self._journal is not None else None
        options = self._options._replace(
            run_id=self.id,
            measurements=["block_*", *self._options.measurements] if self._options.measurements else None,
            collectors=("block",),
            journal=BegunJournal(journal) if journal is not None and self._is_announced else journal,
        )
        meter, on_window = OPEN_BLOCKS.meter, self._on_window
        return Session(BlockJob(self), options, meter=meter, warn=self._warn, on_window=on_window)
