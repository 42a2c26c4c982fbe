"""A block: a piece of this very program, measured from its start to its stop.

A block that is over within some milliseconds is counted at its two ends and never sampled: its record is made from
those. One that lasts longer becomes a session as any other job, with a `BlockJob` that has nothing to launch.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from resource import struct_rusage

from jobmeter.collectors import block as keys
from jobmeter.collectors.contract import ProcessUse, Readings, Target
from jobmeter.errors import JobmeterError, UsageError
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.own_process import (
    OwnMemory,
    drops_children,
    has_children,
    own_children,
    own_usage,
    read_own_io,
)
from jobmeter.kernel.procfs import is_ending
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.meter.watch import Window
from jobmeter.model import Kind, Outcome, Quality, Requirement, Status
from jobmeter.record import build
from jobmeter.redaction import Redaction, redaction
from jobmeter.session.block_clock import BlockClock, BlockCpu
from jobmeter.session.block_job import BlockJob
from jobmeter.session.block_journal import BLOCK_JOURNALS, BegunJournal, BlockJournal
from jobmeter.session.block_processes import BlockProcesses
from jobmeter.session.block_record import (
    UNNAMED,
    UnwatchedBlock,
    block_identity,
    redacted_command,
    unwatched_record,
)
from jobmeter.session.measuring import JobEnd, MeasureOptions, OpenJob, ignore
from jobmeter.session.open_blocks import OPEN_BLOCKS, present_task
from jobmeter.session.session import Session
from jobmeter.working_directory import present_directory

if TYPE_CHECKING:
    from jobmeter.record.types import Figure, Labels, Provenance, Record, RunIdentity

_COUNTERS = frozenset(m.key for m in keys.BlockCollector.measurements if m.kind is Kind.COUNTER)
_WELL = Outcome(Status.COMPLETED, 0)
_SHARED_KEYS = (keys.MEM_PEAK.key, keys.MEM_GROWTH.key, keys.MEMORY.key, keys.READ.key, keys.WRITE.key)


class Block:
    """Counts one piece of this program. `start` and `stop` it once each; see also `collectors.block.BlockHandle`."""

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
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        """UsageError for options that are not valid. `stepped`: only the time within steps is its own.

        `live`: it is sampled from its start on, however short it is. `announced`: it is in the journal from its start
        on, so that it is not lost if the process is killed at once. `own_thread`: other threads are not its own, also
        if they have no block.
        """
        self.id = build.new_run_id()
        self.stepped = stepped
        self.own_thread = own_thread
        self.interleaved = False  # other tasks of its thread ran in between
        self.is_watched = False
        self.clock: BlockClock
        self._options = options
        self._requirement = requirement
        self._on_window = on_window
        self._warn = warn
        self._lock = threading.RLock()
        self._process = 0
        self._journal: BlockJournal | None = None
        self._processes: BlockProcesses | None = None
        self._outcome: Outcome | None = None
        self._raised: str | None = None
        self._final: Readings | None = None
        self._stopped_at: float | None = None
        self._why_not_watched: str | None = None
        self._session: Session | None = None
        self._is_eager = live or bool(options.measurements)
        self._is_announced = announced and not self._is_eager
        self._last_labels: Labels = {}
        if self._is_eager:
            self._make_session()  # refuses now what it would refuse when the block lasts long enough

    def start(self) -> None:
        """Begin to count. StoreError when the store cannot be written; then nothing is begun."""
        if self._process:
            raise UsageError("this block was started already; measure each piece of work with one of its own")
        if self._options.store is not None:
            self._journal = BLOCK_JOURNALS.open(self._options.store, self.id)
        self._process = os.getpid()
        self.thread = threading.get_native_id()
        self.task = present_task()
        self.began = time.time()
        self.started = time.monotonic()
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

    def begin_counting(self, memory: OwnMemory | None, usage: struct_rusage, *, resets: bool, alone: bool) -> None:
        """Called by `OPEN_BLOCKS`: the peak mark was read, and reset if it could be."""
        self._memory = self._last_memory = memory
        self._mark_resets = resets
        self._peak = memory.resident if memory is not None else 0
        self._before = own_children(THIS_MACHINE) if has_children() else frozenset()
        self.clock = BlockClock(OPEN_BLOCKS.meter, alone=alone, stepped=self.stepped)
        self._io = read_own_io(THIS_MACHINE, usage, self.clock.children)

    def note_memory(self, memory: OwnMemory) -> None:
        """The memory of this process now, and its mark since it was last reset."""
        self._last_memory = memory
        began = self._memory
        # A mark that cannot be reset says something only if it rose.
        counts = self._mark_resets or (began is not None and memory.high_mark > began.high_mark)
        self._peak = max(self._peak, memory.high_mark if counts else memory.resident)

    def is_interrupted_by(self, block: Block) -> bool:
        """Whether that block, which begins in the same thread, is of another task that takes turns with this one's."""
        if self.stepped and not self.clock.in_step:
            return True
        return self.task is not None and self.task != block.task

    def stop(self, outcome: Outcome = _WELL, raised: str | None = None, labels: Labels | None = None) -> Record:
        """Count no further, and return the run record; `labels` are those that are known only now.

        UsageError in a process that was forked from the block's.
        """
        self._end(outcome, raised, labels or {})
        with self._lock:
            try:
                return self._conclude()
            finally:
                self._release()

    def leave(self) -> None:
        """Count no further and write no record: the owner of the journal will. See `BlockJournals.belong_to`."""
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
            self._freeze()

    @property
    def journal_path(self) -> str | None:
        """The file that the run is stored in; None when it is not."""
        return self._journal.file.path if self._journal is not None else None

    @property
    def belongs_here(self) -> bool:
        """Whether this process started it, and not one that it was forked from."""
        return self._process == os.getpid()

    def so_far(self) -> Record:
        """The record until now, with the status `running`."""
        with self._lock:
            self.watch()
            if self._session is None:
                raise JobmeterError(f"this block is not sampled: {self._why_not_watched}")
            return self._session.record_so_far()

    def watch(self) -> None:
        """Become a session: sampled, and in the journal. Called by the meter for a block that lasts."""
        with self._lock:
            if self.is_watched or self._outcome is not None:
                return
            self.is_watched = True
            try:
                session = self._make_session()
                self._follow_processes()
                self.clock.note_stolen()
                session.start()
                self._session = session
            except Exception as error:  # the work goes on, whatever fails here
                if self._is_eager and isinstance(error, JobmeterError):
                    raise
                self._why_not_watched = f"{type(error).__name__}: {error}"

    def _follow_processes(self) -> None:
        try:
            self._processes = BlockProcesses(self._before, self._redaction)
        except OSError:
            return  # no /proc here

    # What `collectors.block` reads.

    def counters(self) -> Readings:
        if self._final is not None:
            return {key: value for key, value in self._final.items() if key in _COUNTERS}
        OPEN_BLOCKS.settle(self)
        return {keys.CPU.key: self._cpu(children=self._children_known()).seconds, **self._io_since()}

    def levels(self) -> Readings:
        if self._final is not None or self._processes is None:
            return {}
        memory, processes = self._processes.look()
        self._peak = max(self._peak, memory)
        return {keys.MEMORY.key: memory, keys.PROCESSES.key: processes}

    def marks(self) -> Readings:
        if self._memory is None:
            return {}
        return {keys.MEM_PEAK.key: self._peak, keys.MEM_GROWTH.key: max(self._peak - self._memory.resident, 0)}

    def cpu_nanoseconds(self) -> int | None:
        return self.clock.nanoseconds() if self._final is None else None

    def processes(self) -> list[ProcessUse]:
        return self._processes.listed() if self._processes is not None else []

    def qualities(self) -> dict[str, Quality]:
        children = self._children if self._final is not None else self._children_known()
        cpu = self._final_cpu if self._final is not None else self._cpu(children=children)
        qualities = {keys.CPU.key: cpu.quality}
        if not cpu.whole_process:
            qualities |= dict.fromkeys(_SHARED_KEYS, Quality.SHARED)
        elif children and not (self._processes is not None and self._processes.started_any):
            # Nobody looked while they ran.
            qualities |= dict.fromkeys(_SHARED_KEYS[:3], Quality.AT_LEAST)
        return qualities

    # How it ends.

    def _freeze(self) -> None:
        """The last readings, which the record then has."""
        self._children = self._children_known()
        self._final_cpu = self._cpu(children=self._children)
        counters = {keys.CPU.key: self._final_cpu.seconds, **self._io_since()}
        self._left_running = self._count_left_running()
        self._final = {**counters, **self.marks()}
        if (stolen := self.clock.stolen()) is not None:
            self._final[keys.STOLEN.key] = round(stolen, 2)

    def _cpu(self, *, children: bool) -> BlockCpu:
        return self.clock.so_far(
            children=children,
            foreign_child_reaped=bool(self._before) and not self._before <= own_children(THIS_MACHINE),
            interleaved=self.interleaved,
        )

    def _children_known(self) -> bool:
        """Whether the block started processes, as far as is known."""
        if self._processes is not None and self._processes.started_any:
            return True
        if self.clock.waited_for_children or drops_children():
            return True
        return has_children() and (not self._before or bool(own_children(THIS_MACHINE) - self._before))

    def _count_left_running(self) -> int:
        if not self._children:
            return 0
        if self._processes is not None:
            return self._processes.running()
        return sum(_runs(pid) for pid in own_children(THIS_MACHINE) - self._before)

    def _io_since(self) -> dict[str, int]:
        now = read_own_io(THIS_MACHINE, own_usage(), self.clock.children) if self._io is not None else None
        if now is None or self._io is None:
            return {}
        return {
            keys.READ.key: max(now.read_bytes - self._io.read_bytes, 0),
            keys.WRITE.key: max(now.write_bytes - self._io.write_bytes, 0),
        }

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
        assert self._final is not None, "it was not stopped"
        provenance: Provenance = {}
        end = self.job_end(provenance)
        return unwatched_record(self._as_unwatched(self._final, self.wall_seconds, end), self.outcome, provenance)

    def _as_unwatched(self, readings: Readings, wall_seconds: float, end: JobEnd) -> UnwatchedBlock:
        began, ended = self._memory, self._last_memory
        return UnwatchedBlock(
            self._identity(),
            self._options.interval,
            self.began,
            wall_seconds,
            readings,
            (began.resident, ended.resident) if began is not None and ended is not None else (),
            self.qualities(),
            end,
            self._why_not_watched,
        )

    def usage_so_far(self) -> dict[str, Figure]:
        """The headline figures until now. Cheap: nothing is sampled for it."""
        with self._lock:
            readings = {**self.counters(), **self.marks()}
            block = self._as_unwatched(readings, self.seconds_so_far, JobEnd())
            return unwatched_record(block, Outcome(Status.RUNNING), {})["usage"]

    @property
    def seconds_so_far(self) -> float:
        return time.monotonic() - self.started

    def _identity(self) -> RunIdentity:
        command = list(redacted_command(self._redaction))
        return block_identity(self.id, self._options, self._requirement, self.began, command)

    def _release(self) -> None:
        self.clock.close()
        if self._processes is not None:
            self._processes.close()
        if self._journal is not None:
            BLOCK_JOURNALS.close(self._journal)

    def _abandon(self) -> None:
        """It could not be begun."""
        self._outcome = Outcome(Status.FAILED)
        OPEN_BLOCKS.remove(self)
        self._release()

    # As a session.

    def open_job(self) -> OpenJob:
        """What a session measures of it; this was begun already."""
        target = Target(root=self._process, main=self._process, root_is_job=True, block=self)
        command = list(redacted_command(self._redaction))
        return OpenJob(target, command, present_directory(), self._requirement, name=UNNAMED, started=self.started)

    def job_end(self, provenance: Provenance) -> JobEnd:
        """How it ended; `provenance` gets what else is known."""
        if self._raised is not None:
            provenance["raised"] = self._raised
        return JobEnd(left_running=self._left_running, wall_seconds=self.wall_seconds, labels=self._last_labels)

    @property
    def outcome(self) -> Outcome:
        assert self._outcome is not None, "it was not stopped"
        return self._outcome

    @property
    def wall_seconds(self) -> float:
        assert self._stopped_at is not None, "it was not stopped"
        return self._stopped_at - self.started

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


def _runs(pid: int) -> bool:
    return not is_ending(THIS_MACHINE, pid)
