"""A run of a command that is launched here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.analyse.headline import MEMORY_TOTAL as MEMORY_NOW
from jobmeter.analyse.headline import memory_now
from jobmeter.analyse.outcome import outcome
from jobmeter.collectors.contract import Ending, Reaped, Target
from jobmeter.errors import JobmeterError, NoData, UsageError
from jobmeter.kernel.cgroup.group import Group, create_group, enclosing_oom_kills
from jobmeter.kernel.machine import THIS_MACHINE, Machine, read_bytes
from jobmeter.kernel.procfs import Identity, printable, read_stat
from jobmeter.kernel.subreaper import become_subreaper
from jobmeter.launch.spawn import Launched, Streams, spawn
from jobmeter.launch.supervisor import Supervisor
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample
from jobmeter.model import Outcome, Requirement
from jobmeter.session.measuring import USUAL, MeasureOptions, Measuring, ignore
from jobmeter.session.outputs import judged_by_outputs

if TYPE_CHECKING:
    from jobmeter.launch.members import Members
    from jobmeter.record.types import Record

ORPHANS = ("leave", "wait", "end")


class JobOptions(NamedTuple):
    """A command to run, what it asks for, and what becomes of those it leaves behind."""

    command: list[str]
    directory: str | None = None
    environment: dict[str, str] | None = None
    streams: Streams | None = None
    requirement: Requirement = Requirement()
    enforce: bool = False
    orphans: str = "leave"
    outputs: tuple[str, ...] = ()  # files it is to make
    own_session: bool = False  # without a terminal, and out of reach of what is sent to our group


class Session:
    """`start` it, then `wait` for its record. Nothing it does after `start` can fail the job."""

    def __init__(
        self,
        job: JobOptions,
        options: MeasureOptions = USUAL,
        *,
        meter: Meter | None = None,
        machine: Machine = THIS_MACHINE,
        warn: Callable[[str], None] = ignore,
        on_sample: Callable[[Sample], None] = ignore,
        on_gate: Callable[[Launched], None] = ignore,
        adopt: bool = False,
    ) -> None:
        """UsageError, before anything is started, for options that mean nothing.

        With `adopt`, for a process that serves this job alone, the job's processes become its children if
        their shepherd is killed: then none of them is lost, and how they end is known.
        """
        _check(job)
        if job.orphans not in ORPHANS:
            raise UsageError(f"--orphans: {job.orphans!r} is none of {', '.join(ORPHANS)}")
        self.outcome: Outcome
        self._job = job
        self._machine = machine
        self._warn = warn
        self._on_sample = on_sample
        self._on_gate = on_gate  # told before the job executes anything
        self._measuring = Measuring(
            options, meter=meter, machine=machine, warn=warn, on_sample=self._look_at, on_peek=self._keep_limit
        )
        self._group: Group | None = None
        self._adopt = adopt
        self._started = threading.Event()
        self._cancelled = False

    @property
    def id(self) -> str:
        return self._measuring.id

    @property
    def journal_path(self) -> str | None:
        return self._measuring.journal.path if self._measuring.journal is not None else None

    def start(self) -> None:
        """Start the job. JobmeterError when it cannot be; then nothing is left of it."""
        job = self._job
        self._group = self._make_group()
        self._adopt = self._adopt and become_subreaper()
        try:
            self._launched = spawn(
                job.command,
                environment=own_environment() if job.environment is None else job.environment,
                directory=job.directory,
                streams=job.streams,
                own_session=job.own_session,
            )
        except BaseException:
            self._remove_group()
            raise
        self._launched.group = self._group.path if self._group is not None else None
        try:
            self._on_gate(self._launched)
            self._measure()
        except BaseException:
            # At its gate still: without our word it never runs.
            self._launched.let_go()
            self._remove_group()
            raise
        self._launched.open_gate()
        self._started.set()
        self._measuring.sync()

    def _measure(self) -> None:
        job = self._job
        self._oom_kills_before = enclosing_oom_kills(self._machine)
        self._enter_group()
        self._measuring.begin(self._target(), job.command, job.directory or present_directory(), job.requirement)
        try:
            self._supervisor = Supervisor(
                self._launched,
                self._machine,
                orphans=job.orphans,
                runtime=job.requirement.runtime_seconds if job.enforce else None,
                before_reaping=self._measuring.watch.sample_at_exit,
                find_members=self._find_members,
            )
            self._measuring.go()
        except BaseException:
            self._measuring.close(discard=True)
            raise

    def wait(self) -> Record:
        """Wait for the end of the job and return the run record."""
        try:
            self._supervisor.wait()
        except JobmeterError:
            # It never became the program it was to be: there is nothing to record.
            self._close(discard=True)
            raise
        except BaseException:
            self._supervisor.end("cancelled")
            self._supervisor.wait()
            self._conclude()
            raise
        return self._conclude()

    def receive(self, number: int, from_terminal: bool) -> None:
        """Hand a signal on to the job, once it is there."""
        self._started.wait()
        self._supervisor.receive(number, from_terminal)

    def cancel(self, *, at_once: bool = False) -> None:
        """End the job, with everything it started; `wait` then returns its record. `at_once` spares the farewell."""
        if not self._supervisor.main_ended:
            self._cancelled = True
        self._supervisor.end("cancelled", at_once=at_once)

    def _find_members(self) -> Members:
        """The processes of a job whose shepherd was killed, by what is known of them."""
        from jobmeter.launch.members import Members

        known = [use.identity for use in self._measuring.watch.live_processes()]
        known += [self._identity(self._launched.main)]
        return Members(
            self._machine,
            self._identity(self._launched.shepherd),
            known,
            group=self._launched.group,
            adopter=os.getpid() if self._adopt else None,
        )

    def _identity(self, pid: int) -> Identity:
        try:
            return Identity(pid, read_stat(self._machine, pid).start)
        except (OSError, ValueError):
            return Identity(pid, -1)  # gone

    def _target(self) -> Target:
        return Target(
            root=self._launched.shepherd,
            main=self._launched.main,
            group=self._group,
            machine=self._machine,
            command=printable(b" ".join(map(os.fsencode, self._job.command))),
        )

    def _make_group(self) -> Group | None:
        if not self._measuring.wants("cgroup") and not self._job.enforce:
            return None
        try:
            return create_group(self._machine, self.id)
        except NoData as reason:
            self._measuring.why_not["cgroup"] = str(reason)
            if self._job.enforce and self._job.requirement.memory_bytes and not self._measuring.wants_any(MEMORY_NOW):
                self._warn("--enforce: --memory is no limit here: no cgroup, and nothing that tells memory is measured")
            return None

    def _enter_group(self) -> None:
        if self._group is None:
            return
        try:
            self._group.add(self._launched.main)
        except OSError as error:
            self._measuring.why_not["cgroup"] = f"{self._group.path}: {error.strerror}"
            self._remove_group()
            return
        if self._job.enforce:
            self._limit(self._group, self._job.requirement)

    def _limit(self, group: Group, requirement: Requirement) -> None:
        enforced = self._measuring.enforced
        try:
            if requirement.memory_bytes is not None:
                group.limit_memory(requirement.memory_bytes)
                enforced.append("memory")
            if requirement.cpus is not None:
                group.limit_cpus(requirement.cpus)
                enforced.append("cpus")
        except (OSError, NoData) as error:
            self._warn(f"--enforce: a limit cannot be set here: {error}")

    def _look_at(self, sample: Sample) -> None:
        self._keep_limit(sample)
        self._on_sample(sample)

    def _keep_limit(self, sample: Sample) -> None:
        if self._job.enforce and self._over_memory(sample):
            self._supervisor.end("oom", at_once=True)

    def _over_memory(self, sample: Sample) -> bool:
        """Whether the job exceeds its limit; by the kernel's word where that keeps the limit."""
        limit = self._job.requirement.memory_bytes
        if limit is None:
            return False
        if self._group is not None and (kills := self._group.oom_kills()) is not None:
            return kills > 0
        used = memory_now(sample.values)
        return used is not None and used > limit

    def _conclude(self) -> Record:
        m = self._supervisor.reaped
        reaped = () if m is None else (Reaped(m.user_us / 1e6, m.system_us / 1e6, m.maxrss_kib * 1024),)
        ending = Ending(reaped, self._launched.launcher_bytes())
        left, complete = self._supervisor.left_running, True
        if self._supervisor.shepherd_killed:
            complete = self._note_killed_shepherd()
        record, self.outcome = self._measuring.conclude(ending, self._judge, left, complete=complete)
        self._close()
        return record

    def _note_killed_shepherd(self) -> bool:
        """Have the record say so; False when some processes of the job may not have been found any more.

        What follows the tree of processes, or is told to the shepherd alone, may lack some of them. A cgroup has
        them all, and perf events too, once all have ended.
        """
        self._measuring.more["shepherd_killed"] = True
        self._measuring.unsure = ("proc_", "ps_", "psutil_", "rusage_", *(() if self._adopt else ("perf_",)))
        return self._adopt or self._group is not None

    def _judge(self) -> Outcome:
        supervisor = self._supervisor
        result = outcome(supervisor.wait_status, ended_by=supervisor.ended_by, oom_kills=self._oom_kills())
        # One that was told to end may say 0 for a farewell in good order: that does not make its work done.
        if self._cancelled and result.status == "completed":
            return result._replace(status="cancelled")
        return judged_by_outputs(result, self._job.outputs, self._measuring)

    def _oom_kills(self) -> int:
        """The kernel's count for this job; of the cgroup around it, when it has none of its own."""
        if self._group is not None and (kills := self._group.oom_kills()) is not None:
            return kills
        status = self._supervisor.wait_status
        killed = status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9
        if not killed or self._supervisor.ended_by is not None or self._oom_kills_before is None:
            return 0
        after = enclosing_oom_kills(self._machine)
        return 0 if after is None else after - self._oom_kills_before

    def _close(self, *, discard: bool = False) -> None:
        self._measuring.close(discard=discard)
        self._supervisor.close()
        self._launched.let_go()
        self._remove_group()

    def _remove_group(self) -> None:
        if self._group is not None:
            self._group.remove()
            self._group = None


def _check(job: JobOptions) -> None:
    if not job.command:
        raise UsageError("there is no command to run")
    if any("\0" in word for word in job.command):
        raise UsageError(f"{job.command[0]!r}: a word of the command has a NUL in it, which no program can be given")
    if job.directory is not None and not os.path.isdir(job.directory):
        raise UsageError(f"{job.directory}: there is no such directory to run in")
    for name, value in job.requirement.asked().items():
        if not 0 < value < float("inf"):
            raise UsageError(f"{name}: {value} is not a number above 0")


def own_environment() -> dict[str, str]:
    """The environment this process was given: in the C locale Python adds LC_CTYPE (PEP 538)."""
    environment = dict(os.environ)
    if environment.get("LC_CTYPE") == "C.UTF-8":
        try:
            given = read_bytes("/proc/self/environ").split(b"\0")
        except OSError:
            return environment
        if b"LC_CTYPE=C.UTF-8" not in given:
            del environment["LC_CTYPE"]
    return environment


def present_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # it was deleted
