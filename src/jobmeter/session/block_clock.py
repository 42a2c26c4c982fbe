"""The CPU time of a block: of this process or one of its threads, and of the threads and processes started there.

CPU time is counted in two ways. Clocks of the kernel count this process or the thread, and rusage the children that
were waited for. Perf events, opened at the start, are inherited by every thread and process that is started from then
on, waited for or not. If the events counted more, the difference is CPU time that clocks and rusage do not see.

Events also count the time in which a hypervisor used the CPU; clocks do not. So what a thread has started, while other
threads work too, is the difference of two events: one that is inherited, and one of the thread alone.
"""

from __future__ import annotations

import os
import resource
import threading
import time

from jobmeter.errors import NoData
from jobmeter.kernel.hostfs import read_cpu_time
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.own_process import thread_count
from jobmeter.kernel.perf import Event, open_event
from jobmeter.kernel.procfs import thread_ids
from jobmeter.kernel.thread_clock import thread_clock
from jobmeter.light_typing import NamedTuple
from jobmeter.meter.meter import Meter
from jobmeter.model import Quality

_MOST_THREADS = 16
"""If more other threads than this run at the start of a block, they get no event: each costs some microseconds."""
_NOISE, _NOISE_SECONDS = 0.01, 0.0005
"""Noise, as a share and in seconds: clock and event of one thread were found to differ by 0.05 ms in 0.2 s."""
_AGREE = 1.03
"""Two counts of CPU time agree when they are within this ratio."""
_SAME_MOMENT = 0.0002
"""Seconds that a thread may use between two readings of its clock, or event, that count as of one moment."""
_ALONE, _ALONE_SECONDS = 0.02, 0.002
"""CPU time, as a share and in seconds, that a process may use outside a block which counts as the whole process."""


class _Reading(NamedTuple):
    """The counters at one moment, in seconds."""

    process: float  # all threads of this process but the sampling thread
    thread: float | None  # None: the thread has ended
    waited: float  # children that were waited for
    event: float  # by an event: the thread, and what it started since
    own_event: float  # by an event: the thread alone, where that is needed
    events: float  # by an event: the other threads, and what they started since


class BlockCpu(NamedTuple):
    """The CPU time of a block, and how far to trust it."""

    seconds: float
    quality: Quality
    whole_process: bool  # nothing else in this process used CPU time, so that memory and I/O are the block's too


class BlockClock:
    """Counts from its creation. `settle` is called when blocks of other threads begin or end while this one is open."""

    children: resource.struct_rusage
    """The usage of children that were waited for, as of the last `settle`."""

    def __init__(self, meter: Meter, *, alone: bool, stepped: bool) -> None:
        """`alone`: no other thread has an open block. `stepped`: CPU time of its thread counts only within steps."""
        self._meter = meter
        self._stepped = stepped
        self.alone = alone
        self._ever_beside = not alone
        self._own = self._waited = self._counted = 0.0
        self._started = 0.0  # what the thread started while it was not alone, or between steps
        self._process = self._thread = 0.0  # over the whole time, in steps or not, alone or not
        self._thread_lost = False  # the thread, and so its clock, ended before the block did
        self._step_began: float | None = None
        self._stolen_before: float | None = None
        self._thread_id = thread = threading.get_native_id()
        self._thread_clock = thread_clock(thread)
        self._event = _try_event(thread)
        self._has_event = self._event is not None
        self._own_event: Event | None = None
        if stepped or not alone:
            self._open_own_event()
        others = self._other_threads(thread) if alone and not stepped and self._has_event else []
        self._events = _try_event(*others) if 0 < len(others) <= _MOST_THREADS else None
        self._covers_process = alone and self._has_event and (not others or self._events is not None)
        self._first = self._last = self._read()

    def _other_threads(self, thread: int) -> list[int]:
        """Other threads that already run, without the meter's; also those of numerical libraries, not only Python's."""
        try:
            if thread_count(THIS_MACHINE) == (1 if self._meter.thread_id is None else 2):
                return []  # there are no threads but this one and the meter's
            threads = thread_ids(THIS_MACHINE, os.getpid())
        except OSError:
            return []
        return [each for each in threads if each not in (thread, self._meter.thread_id)]

    def _open_own_event(self) -> None:
        if self._has_event and self._own_event is None:
            self._own_event = _try_event(self._thread_id, inherit=False)

    def note_stolen(self) -> None:
        """From now on count the time that a hypervisor takes: events include it. Called only for blocks that last."""
        self._stolen_before = _stolen()

    def settle(self, *, alone: bool) -> None:
        """Add the CPU time used since the last call. `alone`: whether no other thread has an open block from now on."""
        had_own_event = self._own_event is not None
        if not alone:
            self._open_own_event()
        now, last = self._read(), self._last
        process = max(now.process - last.process, 0.0)
        self._process += process
        thread = max(now.thread - last.thread, 0.0) if now.thread is not None and last.thread is not None else None
        event = max(now.event - last.event, 0.0)
        own_event = now.own_event - last.own_event if had_own_event else None
        # A thread that has ended has no clock any more. It used no more than the whole process.
        after_its_end = event if own_event is None else min(own_event, process)
        in_thread = after_its_end if thread is None else thread
        # Less than nothing if the thread ran between the readings of its two events: the next call has that much more.
        started = event - (in_thread if own_event is None else own_event)
        self._thread += in_thread
        if self._stepped:
            self._started += started
            self._counted += started
        elif self.alone:
            self._own += process
            self._waited += max(now.waited - last.waited, 0.0)
            self._counted += event + max(now.events - last.events, 0.0)
        else:
            self._own += in_thread
            self._started += started
            self._counted += in_thread + started
            self._thread_lost = self._thread_lost or thread is None
        self.alone = alone
        self._ever_beside = self._ever_beside or not alone
        self._last = now

    def enter_step(self) -> None:
        self._step_began = time.thread_time()

    def leave_step(self) -> None:
        if self._step_began is not None:
            seconds = time.thread_time() - self._step_began
            self._own += seconds
            self._counted += seconds
            self._step_began = None

    @property
    def in_step(self) -> bool:
        return self._step_began is not None

    @property
    def waited_for_children(self) -> bool:
        """Whether this process waited for some child since the start."""
        return self._last.waited > self._first.waited

    def nanoseconds(self) -> int | None:
        """CPU time counted by the events; None if they do not cover the whole process."""
        if self._event is None or not self._covers_process:
            return None
        return self._event.read() + (self._events.read() if self._events is not None else 0)

    def so_far(self, *, children: bool, foreign_child_reaped: bool, interleaved: bool) -> BlockCpu:
        """The CPU time, as of the last `settle`.

        `children`: the block started processes, as far as is known. `foreign_child_reaped`: a child that ran before the
        block was waited for, so that rusage includes its CPU time from before the block. `interleaved`: other tasks of
        the thread ran in between.
        """
        base = self._own if foreign_child_reaped and self._has_event else self._own + self._waited
        started = self._counted - base
        if not children:
            # Only threads were started, and the process clock counts them all: also those of the time alone.
            started = min(self._started, max(self._process - self._thread, 0.0))
        if started <= base * _NOISE + _NOISE_SECONDS:
            started = 0.0
        seconds, is_sure = self._less_stolen(base, started)
        whole_process = not self._ever_beside and not interleaved and not self._stepped
        if not whole_process and not interleaved:
            whole_process = self._process <= seconds * (1 + _ALONE) + _ALONE_SECONDS
        quality = Quality.EXACT
        if (interleaved and (not self._stepped or started)) or (foreign_child_reaped and not self._has_event):
            quality = Quality.SHARED
        elif not is_sure or self._lacks_some(children=children, whole_process=whole_process):
            quality = Quality.AT_LEAST
        return BlockCpu(round(seconds, 6), quality, whole_process)

    def _less_stolen(self, base: float, started: float) -> tuple[float, bool]:
        """The CPU time including `started`, and whether the part that a hypervisor took is certainly negligible.

        Events count the time in which a hypervisor used the CPU, clocks do not.
        """
        counted = base + started
        stolen = (self.stolen() or 0.0) if started else 0.0
        by_clocks = self._process + self._waited
        if counted - stolen >= counted / _AGREE or counted / _AGREE <= by_clocks <= counted * _AGREE:
            return counted, True
        return max(base, counted - stolen), False

    def _lacks_some(self, *, children: bool, whole_process: bool) -> bool:
        """Whether CPU time of something that the block started may not have been counted at all."""
        if self._has_event:
            return children and not self._covers_process and not self._ever_beside
        return self._thread_lost or children or self._waited > 0 or not whole_process

    def stolen(self) -> float | None:
        """Seconds that a hypervisor took since `note_stolen`; None when that is not known."""
        if self._stolen_before is None or (stolen := _stolen()) is None:
            return None
        return max(stolen - self._stolen_before, 0.0)

    def _read(self) -> _Reading:
        self.children = children = resource.getrusage(resource.RUSAGE_CHILDREN)
        process, thread = self._process_seconds(), self._thread_seconds()
        event, own_event = self._event_seconds()
        events = self._events.read() / 1e9 if self._events is not None else 0.0
        return _Reading(process, thread, children.ru_utime + children.ru_stime, event, own_event, events)

    def _event_seconds(self) -> tuple[float, float]:
        """CPU time of the thread and what it started, and of the thread alone, which may run while both are read."""
        if self._event is None:
            return 0.0, 0.0
        if self._own_event is None:
            return self._event.read() / 1e9, 0.0
        for _ in range(3):
            own, event = self._own_event.read(), self._event.read()
            if self._own_event.read() - own < _SAME_MOMENT * 1e9:
                break
        return event / 1e9, own / 1e9

    def _process_seconds(self) -> float:
        """CPU time of this process without the sampling thread, which may run while both clocks are read."""
        for _ in range(3):
            sampling, seconds = self._meter.used_seconds(), time.process_time()
            if self._meter.used_seconds() - sampling < _SAME_MOMENT:
                break
        return seconds - sampling

    def _thread_seconds(self) -> float | None:
        if self._thread_clock is None:
            return time.thread_time()  # a system without clocks of other threads
        try:
            return time.clock_gettime(self._thread_clock)
        except OSError:
            return None

    def close(self) -> None:
        for event in (self._event, self._own_event, self._events):
            if event is not None:
                event.close()
        self._event = self._own_event = self._events = None


def _try_event(*threads: int, inherit: bool = True) -> Event | None:
    """An event for the CPU time of these threads and all that they start; None where that is not allowed."""
    try:
        return open_event("task_clock", *threads, at_exec=False, inherit=inherit)
    except NoData:
        return None


def _stolen() -> float | None:
    try:
        return read_cpu_time(THIS_MACHINE).stolen
    except (OSError, ValueError):
        return None
