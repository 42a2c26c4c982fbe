"""What a collector is, and what it gets and gives.

A collector describes its measurements once and opens a source for each job.
The source reads them, again and again; the meter does the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Union

from jobmeter.kernel.cgroup.group import Group
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.model import Measurement, Value

if TYPE_CHECKING:
    from jobmeter.collectors.container import ContainerHandle
    from jobmeter.record.types import ProcessEntry


class Target(NamedTuple):
    """The job to be measured, as it stands at its gate."""

    root: int  # the process all of the job's descend from
    main: int  # the process of the command itself
    root_is_job: bool = False  # something already running; a shepherd is not part of the job
    group: Group | None = None  # a cgroup of the job's own
    machine: Machine = THIS_MACHINE
    command: str = ""
    container: ContainerHandle | None = None  # the job is a container, and its engine can be asked


class Moment(NamedTuple):
    """When a reading is asked for, and what is known of the time since the last one."""

    monotonic: float
    quiet: bool = False  # no process of the job ran: what only they can change is as it was


class Reaped(NamedTuple):
    """What wait4 said of one or more processes: their own use and that of children they waited for."""

    user_seconds: float
    system_seconds: float
    maxrss_bytes: int


class Ending(NamedTuple):
    """How a job ended, for the sources that learn something from it."""

    reaped: tuple[Reaped, ...] = ()
    launcher_bytes: int = 0  # where ru_maxrss began


class ProcessUse(NamedTuple):
    """One process in the run record: what it did during the measurement."""

    identity: Identity
    cmd: str
    cpu_seconds: float
    rss_peak_bytes: int
    seconds: float  # from its start, or that of the measurement, to its end, not to when it was waited for
    together: int = 1  # how many processes this stands for

    def entry(self) -> ProcessEntry:
        """As it stands in a run record; several added up have no pid."""
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
"""Key → value for the job, or a column. What could not be read is not in it."""


class Source(Protocol):
    """Reads the measurements of one job. An error costs this reading, nothing else.

    A source may also be a `Pulse` or a `ProcessLister`, and may have

    - `peek(moment) -> Readings`: levels that are cheap to read, asked for often while the job runs; the source bounds
      what that costs;
    - `nothing_ran()`: called in place of that when no process of the job ran since the last look;
    - `incomplete() -> keys`: they are at least what they say;
    - `outran(cpu_nanoseconds) -> bool`: it saw more CPU used than a pulse shows;
    - `missing() -> {key: why}`: the keys wanted that cannot be read of this job.
    """

    def read(self, moment: Moment) -> Readings: ...

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        """The last reading: every process has ended, or is left to itself."""
        ...

    def close(self) -> None: ...


class Pulse(Protocol):
    """A source that cheaply tells whether a job ran since the last look."""

    def cpu_nanoseconds(self) -> int | None: ...


class ProcessLister(Protocol):
    """A source that knows the processes of the job one by one."""

    def processes(self) -> list[ProcessUse]: ...
    def live(self) -> list[ProcessUse]: ...


class Collector(Protocol):
    """One source of measurements, described.

    A collector of which some keys may be missing here also has `missing(machine) -> {key: why}`; one that others
    may make superfluous has `spare(target) -> keys`: of the default, what need not be measured of this job.
    """

    name: str
    measurements: tuple[Measurement, ...]
    default: frozenset[str]  # the keys that are measured unless others are asked for

    def check(self, machine: Machine) -> None:
        """NoData, with what it would need, when nothing can be measured here."""
        ...

    def open(self, target: Target, wanted: frozenset[str]) -> Source:
        """Begin to measure; NoData when this job cannot be measured so."""
        ...
