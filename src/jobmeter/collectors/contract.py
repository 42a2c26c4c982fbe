"""The interface of collectors: what they are, what they receive and what they return.

A collector describes its measurements once and opens a source for each job.
The source reads them, again and again; the meter does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jobmeter.kernel.cgroup.group import Group
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.light_typing import TYPE_CHECKING, NamedTuple, Protocol, Union
from jobmeter.model import Measurement, Quality, Value
from jobmeter.redaction import NOTHING_HIDDEN, Redaction

if TYPE_CHECKING:
    from jobmeter.collectors.block import BlockHandle
    from jobmeter.collectors.container import ContainerHandle
    from jobmeter.record.types import CollectorState, DeviceEntry, PeakEntry, ProcessEntry, ThreadEntry


class Target(NamedTuple):
    """The job to be measured, before its exec or already running."""

    root: int  # the process that all processes of the job descend from
    main: int  # the process of the command itself
    root_is_job: bool = False  # the root is part of a job that already runs; else it is a shepherd
    group: Group | None = None  # a cgroup that holds only the job
    machine: Machine = THIS_MACHINE
    own_network: bool = False  # the job has a network namespace that nothing else is in
    command: str = ""
    container: ContainerHandle | None = None  # set if the job is a container: its runtime has stats
    redaction: Redaction = NOTHING_HIDDEN  # hides secrets in command lines that are recorded
    block: BlockHandle | None = None  # set if the job is a block of this Python program


class Moment(NamedTuple):
    """When a reading is taken, and what is known about the time since the last one."""

    monotonic: float
    quiet: bool = False  # no process of the job ran: values that only they can change are unchanged


class Reaped(NamedTuple):
    """What wait4 reported of one or more processes: their own usage and that of children they waited for."""

    user_seconds: float
    system_seconds: float
    maxrss_bytes: int


class Ending(NamedTuple):
    """How a job ended, for the sources that use it."""

    reaped: tuple[Reaped, ...] = ()
    launcher_bytes: int = 0  # the size of the process that forked the job, at which ru_maxrss starts


class ProcessUse(NamedTuple):
    """One process in the run record: what it used during the measurement."""

    identity: Identity
    cmd: str
    cpu_seconds: float
    rss_peak_bytes: int
    seconds: float  # from its start, or that of the measurement, to its end; the time as a zombie is not included
    together: int = 1  # how many processes this stands for

    def entry(self) -> ProcessEntry:
        """The entry for the run record; one that stands for several processes has no pid."""
        figures: ProcessEntry = {
            "cmd": self.cmd,
            "cpu_seconds": self.cpu_seconds,
            "rss_peak_bytes": self.rss_peak_bytes,
            "seconds": self.seconds,
        }
        return {**figures, "processes": self.together} if self.together > 1 else {"pid": self.identity.pid, **figures}


Column = Union[list[int], list[float], list[str]]
"""One value per process; the measurement's `across` says how they combine."""

Readings = dict[str, Union[Value, Column]]
"""Key → value for the job, or a column. A key that could not be read is absent."""


class Source(Protocol):
    """Reads the measurements of one job. An exception loses only this reading.

    A source may also have the methods of `Abilities`.
    """

    def read(self, moment: Moment) -> Readings: ...

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        """The last reading: every process has ended, or is no longer measured."""

    def close(self) -> None: ...


class Abilities(NamedTuple):
    """The optional methods of a source, besides those of `Source`; None for a method that it does not have."""

    cpu_nanoseconds: Callable[[], int | None] | None  # CPU time of the job, cheap to read: shows whether the job ran
    peek: Callable[[Moment], Readings] | None  # levels, read often between samples; the source bounds the cost
    nothing_ran: Callable[[], None] | None  # called in place of `peek` when no process of the job ran since
    outran: Callable[[int], bool] | None  # whether it measured more CPU time than another source's `cpu_nanoseconds`
    incomplete: Callable[[], Iterable[str]] | None  # keys whose figures are "at least"
    qualities: Callable[[], dict[str, Quality]] | None  # of keys whose figures have another quality in this run
    missing: Callable[[], dict[str, str]] | None  # selected keys that cannot be read of this job, each with the reason
    processes: Callable[[], list[ProcessUse]] | None  # the processes of the job, for the record
    live: Callable[[], list[ProcessUse]] | None  # the processes that have not ended
    may_stop: Callable[[], None] | None  # no key was requested by name: it may stop if it slows the job down
    faults: Callable[[], list[str]] | None  # what was wrong with the readings of a plug-in
    state: Callable[[], CollectorState | None] | None  # its state, if that is known only while the job runs
    threads: Callable[[], list[ThreadEntry]] | None  # the busiest threads of the job, for the record
    peaks: Callable[[float], list[PeakEntry]] | None  # the highs of memory, with times since this monotonic time
    devices: Callable[[], list[DeviceEntry]] | None  # what the job used besides CPUs and memory, for the record


def abilities(source: Source) -> Abilities:
    """What a source can do: the one place where its optional methods are looked up."""
    return Abilities(*[getattr(source, name, None) for name in Abilities._fields])


class Collector(Protocol):
    """Describes one source of measurements, and opens it for a job.

    A collector may also have the methods of `CollectorAbilities`.
    """

    name: str
    measurements: tuple[Measurement, ...]
    default: frozenset[str]  # the keys that are measured unless others are requested

    def check(self, machine: Machine) -> None:
        """Raise NoData, with what would be needed, if nothing can be measured here."""

    def open(self, target: Target, wanted: frozenset[str]) -> Source:
        """Begin to measure. Raises NoData if this collector cannot measure this job."""


class CollectorAbilities(NamedTuple):
    """The optional methods of a collector, besides those of `Collector`; None for a method that it does not have."""

    missing: Callable[[Machine], dict[str, str]] | None  # keys that cannot be measured here, each with the reason
    redundant: Callable[[Target], frozenset[str]] | None  # default keys that another collector measures for this job


def collector_abilities(collector: Collector) -> CollectorAbilities:
    """What a collector can do: the one place where its optional methods are looked up."""
    return CollectorAbilities(*[getattr(collector, name, None) for name in CollectorAbilities._fields])
