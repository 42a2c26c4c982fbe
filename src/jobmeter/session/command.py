"""A command that is launched here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from jobmeter.analyse.headline_memory import MEMORY_TOTAL as MEMORY_NOW
from jobmeter.analyse.headline_memory import memory_now
from jobmeter.analyse.outcome import outcome
from jobmeter.collectors.contract import Ending, Reaped, Target
from jobmeter.errors import NoData, UsageError
from jobmeter.kernel.cgroup.group import JobGroup, create_group, enclosing_oom_kills
from jobmeter.kernel.machine import read_bytes
from jobmeter.kernel.procfs import Identity, command_text, read_stat
from jobmeter.kernel.subreaper import become_subreaper
from jobmeter.launch.spawn import LaunchedJob, Streams, check_descriptors, spawn
from jobmeter.launch.supervisor import Supervisor
from jobmeter.light_typing import TYPE_CHECKING, NamedTuple
from jobmeter.meter.watch import Sample
from jobmeter.model import Outcome, Requirement, Status
from jobmeter.session.measuring import JobEnd, Measuring, OpenJob, ignore
from jobmeter.session.outputs import check_outputs
from jobmeter.working_directory import present_directory

if TYPE_CHECKING:
    from jobmeter.launch.members import Members
    from jobmeter.launch.own_network import SlirpConnection

ORPHANS = ("leave", "wait", "end")


class JobOptions(NamedTuple):
    """A command to run, its requirement, and what to do with processes that it leaves running."""

    command: list[str]
    directory: str | None = None
    environment: dict[str, str] | None = None
    streams: Streams | None = None
    requirement: Requirement = Requirement()
    enforce: bool = False
    orphans: str = "leave"
    outputs: tuple[str, ...] = ()  # files that it has to make
    own_network: bool = False  # a network namespace of its own, so that its traffic is counted
    own_session: bool = False  # without a terminal, and not reached by signals to our process group
    heeds_sigterm: bool = True  # else it is killed at once, without SIGTERM, when it has to end


class LaunchedCommand:
    """A command that is launched here, under a shepherd of its own. See `session.contract.JobControl`."""

    in_container = False

    def __init__(
        self, job: JobOptions, *, before_exec: Callable[[LaunchedJob], None] = ignore, adopt: bool = False
    ) -> None:
        """Raises UsageError if an option is not valid. `before_exec` is called while the job is held before its exec.

        With `adopt`, the job's processes become children of this process if their shepherd is killed: then none is
        lost, and how they end is known. Only for a process that serves this job alone.
        """
        _check(job)
        self._job = job
        self._before_exec = before_exec
        self._adopt = adopt
        self._measuring: Measuring
        self._launched: LaunchedJob
        self._is_launched = False
        self._supervisor: Supervisor | None = None
        self._group: JobGroup | None = None
        self._connection: SlirpConnection | None = None  # of the job's own network to that of the machine
        self._running = threading.Event()
        self._cancelled = False

    def prepare(self, measuring: Measuring) -> None:
        self._measuring = measuring

    def open(self) -> OpenJob:
        job = self._job
        check_descriptors()
        self._group = self._make_group()
        self._adopt = self._adopt and become_subreaper()
        self._launched = self._connected() if job.own_network else self._spawn()
        self._is_launched = True
        self._launched.group = self._group.path if self._group is not None else None
        self._before_exec(self._launched)
        self._oom_kills_before = enclosing_oom_kills(self._measuring.machine)
        self._enter_group()
        directory = job.directory or present_directory()
        return OpenJob(self._target(), job.command, directory, job.requirement, on_levels=self._check_memory)

    def _spawn(self) -> LaunchedJob:
        job = self._job
        return spawn(
            job.command,
            environment=own_environment() if job.environment is None else job.environment,
            directory=job.directory,
            streams=job.streams,
            own_session=job.own_session,
        )

    def _connected(self) -> LaunchedJob:
        """Start the job in a network namespace of its own, and connect that to the network of the machine."""
        from jobmeter.launch.own_network import SlirpConnection, in_new_network  # late: few runs need it

        launched = in_new_network(self._spawn)
        try:
            self._connection = SlirpConnection(launched.main)
        except BaseException:
            launched.close()
            raise
        launched.helpers.append(self._connection.pid)
        return launched

    def run(self) -> None:
        job = self._job
        self._supervisor = Supervisor(
            self._launched,
            self._measuring.machine,
            orphans=job.orphans,
            heeds_sigterm=job.heeds_sigterm,
            time_limit=job.requirement.runtime_seconds if job.enforce else None,
            before_reaping=self._measuring.watch.sample_at_exit,
            find_members=self._find_members,
        )
        self._launched.execute()
        self._running.set()

    def wait(self) -> None:
        self._followed().wait()

    def receive(self, number: int, from_terminal: bool) -> None:
        """Forward a signal to the job, once it runs."""
        self._running.wait()
        self._followed().receive(number, from_terminal)

    def stop(self, *, at_once: bool) -> None:
        """End the job, with everything it started."""
        supervisor = self._followed()
        if not supervisor.main_ended:
            self._cancelled = True
        supervisor.end(Status.CANCELLED, at_once=at_once)

    def _followed(self) -> Supervisor:
        assert self._supervisor is not None, "it was not started"
        return self._supervisor

    def _find_members(self) -> Members:
        """The processes of a job whose shepherd was killed, found by what is known about them."""
        from jobmeter.launch.members import Members

        identities = [use.identity for use in self._measuring.watch.live_processes()]
        identities += [self._identity(self._launched.main)]
        return Members(
            self._measuring.machine,
            self._identity(self._launched.shepherd),
            identities,
            group=self._launched.group,
            adopter=os.getpid() if self._adopt else None,
            helpers=self._launched.helpers,
        )

    def _identity(self, pid: int) -> Identity:
        try:
            return Identity(pid, read_stat(self._measuring.machine, pid).start)
        except (OSError, ValueError):
            return Identity(pid, -1)  # the process has ended

    def _target(self) -> Target:
        return Target(
            root=self._launched.shepherd,
            main=self._launched.main,
            group=self._group,
            machine=self._measuring.machine,
            own_network=self._job.own_network,
            command=command_text(os.fsencode(" ".join(self._measuring.redaction.words(self._job.command)))),
        )

    def _make_group(self) -> JobGroup | None:
        if not self._measuring.sources.wants("cgroup") and not self._job.enforce:
            return None
        try:
            return create_group(self._measuring.machine, self._measuring.id)
        except NoData as reason:
            self._measuring.sources.why_not["cgroup"] = str(reason)
            if (
                self._job.enforce
                and self._job.requirement.memory_bytes
                and not self._measuring.sources.wants_any(MEMORY_NOW)
            ):
                self._measuring.warn(
                    "--enforce: --memory cannot be enforced: there is no cgroup, and memory is not measured"
                )
            return None

    def _enter_group(self) -> None:
        if self._group is None:
            return
        try:
            self._group.add(self._launched.main)
        except OSError as error:
            self._measuring.sources.why_not["cgroup"] = f"{self._group.path}: {error.strerror}"
            self._remove_group()
            return
        if self._job.enforce:
            self._limit(self._group, self._job.requirement)

    def _limit(self, group: JobGroup, requirement: Requirement) -> None:
        enforced = self._measuring.enforced
        try:
            if requirement.memory_bytes is not None:
                group.limit_memory(requirement.memory_bytes)
                enforced.append("memory")
            if requirement.cpus is not None:
                group.limit_cpus(requirement.cpus)
                enforced.append("cpus")
        except (OSError, NoData, OverflowError) as error:
            self._measuring.warn(f"--enforce: a limit cannot be set here: {error}")

    def _check_memory(self, sample: Sample) -> None:
        if self._job.enforce and self._over_memory(sample) and self._supervisor is not None:
            self._supervisor.end(Status.OOM, at_once=True)

    def _over_memory(self, sample: Sample) -> bool:
        """Whether the job exceeds its memory limit; if the kernel enforces it, whether it killed a process for that."""
        limit = self._job.requirement.memory_bytes
        if limit is None:
            return False
        if self._group is not None and (kills := self._group.oom_kills()) is not None:
            return kills > 0
        used = memory_now(sample.values)
        return used is not None and used > limit

    def end(self) -> JobEnd:
        supervisor, complete = self._followed(), True
        used = supervisor.reaped
        reaped = () if used is None else (Reaped(used.user_us / 1e6, used.system_us / 1e6, used.maxrss_kib * 1024),)
        if supervisor.shepherd_killed:
            complete = self._note_killed_shepherd()
        return JobEnd(Ending(reaped, self._launched.launcher_bytes()), supervisor.left_running, complete=complete)

    def _note_killed_shepherd(self) -> bool:
        """Record that the shepherd was killed; False when some processes of the job may not have been found.

        Sources that follow the process tree, or rely on the shepherd, may lack some of them. A cgroup counts them all,
        and so do perf events once all processes have ended.
        """
        self._measuring.provenance["shepherd_killed"] = True
        self._measuring.uncertain = ("proc_", "ps_", "psutil_", "rusage_", *(() if self._adopt else ("perf_",)))
        return self._adopt or self._group is not None

    def outcome(self) -> Outcome:
        supervisor = self._followed()
        supervisor.await_own_signal()
        result = outcome(supervisor.wait_status, ended_by=supervisor.ended_by, oom_kills=self._oom_kills(supervisor))
        # A job that was sent SIGTERM may exit with 0 because it ended in good order; its work is not done.
        if self._cancelled and result.status == Status.COMPLETED:
            return result._replace(status=Status.CANCELLED)
        return check_outputs(result, self._job.outputs, self._measuring)

    def _oom_kills(self, supervisor: Supervisor) -> int:
        """The OOM kills of this job; without a cgroup of its own, those in the enclosing cgroup if SIGKILL ended it."""
        if self._group is not None and (kills := self._group.oom_kills()) is not None:
            return kills
        status = supervisor.wait_status
        killed = status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9
        if not killed or supervisor.ended_by is not None or self._oom_kills_before is None:
            return 0
        after = enclosing_oom_kills(self._measuring.machine)
        return 0 if after is None else after - self._oom_kills_before

    def close(self) -> None:
        if self._supervisor is not None:
            self._supervisor.close()
        if self._is_launched:
            self._launched.close()  # a job that is still held before its exec never runs
            self._is_launched = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._remove_group()

    def _remove_group(self) -> None:
        if self._group is not None:
            self._group.remove()
            self._group = None


def _check(job: JobOptions) -> None:
    if job.orphans not in ORPHANS:
        raise UsageError(f"--orphans: {job.orphans!r} is not one of {', '.join(ORPHANS)}")
    if not job.command:
        raise UsageError("there is no command to run")
    if any("\0" in word for word in job.command):
        raise UsageError(f"{job.command[0]!r}: an argument contains a NUL byte, which cannot be passed to a program")
    if job.directory is not None and not os.path.isdir(job.directory):
        raise UsageError(f"{job.directory}: there is no such directory to run in")
    for name, value in job.requirement.requested().items():
        if not 0 < value < float("inf"):
            raise UsageError(f"{name}: {value} is not a number above 0")


def own_environment() -> dict[str, str]:
    """The environment that this process was given, without the LC_CTYPE that Python adds in the C locale (PEP 538)."""
    environment = dict(os.environ)
    if environment.get("LC_CTYPE") == "C.UTF-8":
        try:
            given = read_bytes("/proc/self/environ").split(b"\0")
        except OSError:
            return environment
        if b"LC_CTYPE=C.UTF-8" not in given:
            del environment["LC_CTYPE"]
    return environment
