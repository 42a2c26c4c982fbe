"""Starts a command under a shepherd of its own, held before it executes its program.

While it is held, its cgroup and perf events are set up, so that they count from
the job's first instruction. See shepherd.c for what the shepherd does.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence

from jobmeter.errors import LaunchError, NoData
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.pidfd import PidFd
from jobmeter.kernel.procfs import read_parentage, read_status
from jobmeter.launch import protocol
from jobmeter.launch.program import find_program, refusal, with_interpreter
from jobmeter.launch.signals import mask_of_jobs

_HERE = os.path.dirname(os.path.abspath(__file__))
_DEFAULT_AGAIN = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]
"""Signals that Python ignores, and the job must not."""


@functools.cache
def _compiled_shepherds() -> tuple[str, ...]:
    """Paths at which to try to execute the compiled shepherd; empty if it was not built for this machine."""
    path = f"{_HERE}/shepherd-{os.uname().machine}"
    if sys.platform != "linux" or os.environ.get("JOBMETER_SHEPHERD") == "python" or not os.path.exists(path):
        return ()
    in_memory = _copy_to_memory(path)
    # In memory, it can be executed whatever the permissions and mount options of the package, if there is a /proc.
    return (path,) if in_memory is None else (f"/proc/self/fd/{in_memory}", path)


def _copy_to_memory(path: str) -> int | None:
    """A file descriptor of a copy in memory; None if that is not possible."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        descriptor = os.memfd_create("jobmeter", os.MFD_CLOEXEC)
    except OSError:
        return None
    try:
        if os.write(descriptor, content) == len(content):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)  # files may not become so large here (ulimit -f); the limit holds for memory too
    return None


def has_compiled_shepherd() -> bool:
    return any(os.access(path, os.X_OK) for path in _compiled_shepherds())


_LONGEST_WAIT = 86400.0
_DESCRIPTORS = 28
"""File descriptors that a run needs at least. With few more, the /proc files of its processes are not kept open."""
_REAPING = 1.0
"""Seconds in which init, or the subreaper that adopted the main process, is expected to wait for it."""


class Streams:
    """File descriptors for stdin, stdout and stderr of the job; None for jobmeter's own."""

    def __init__(self, stdin: int | None = None, stdout: int | None = None, stderr: int | None = None) -> None:
        self.redirected = {number: fd for number, fd in enumerate((stdin, stdout, stderr)) if fd is not None}


class LaunchedJob:
    """A job under its shepherd, from before its exec to the end of the last of its processes."""

    def __init__(self, shepherd: int, control: int, status: int, main: int, path: str, directory: str | None) -> None:
        self.shepherd = shepherd
        self.main = main
        self.group: str | None = None  # the directory of the job's cgroup, if it is to have one
        self.helpers: list[int] = []  # children of this process that serve the job but are not part of it
        self._pidfd: PidFd | None = None
        self._control = control
        self._status = status
        self._path, self._directory = path, directory
        self._wake_read, self._wake_write = os.pipe()
        self._poll = select.poll()
        self._poll.register(status, select.POLLIN)
        self._poll.register(self._wake_read, select.POLLIN)
        self._launcher_bytes: int | None = None

    def set_main(self, main: int, *, shepherd_is_compiled: bool) -> None:
        """Note the main process, which waits before its exec. A pidfd reports its end also without a shepherd."""
        self.main = main
        with contextlib.suppress(NoData):
            self._pidfd = PidFd(main)
        if not shepherd_is_compiled:
            # Without /proc, the size of the shepherd is unknown; it is less than ours, as it imports less.
            self._launcher_bytes = self._shepherd_bytes() or own_maxrss()

    def execute(self) -> None:
        """Let the job execute its program."""
        self._send_continue()

    def may_be_reaped(self) -> None:
        """Let the shepherd reap the main process: the last reading was taken."""
        self._send_continue()

    def _send_continue(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, protocol.GO)

    def next_message(self, timeout: float | None = None) -> protocol.Message | None:
        """The shepherd's next message; None if there was none for `timeout` seconds, or until `wake` was called.

        Raises EOFError if there are no more: every process has ended, or the shepherd was killed.
        """
        # poll() takes an int of milliseconds; a caller that waits for longer calls again.
        ready = self._poll.poll(None if timeout is None else min(max(timeout, 0.0), _LONGEST_WAIT) * 1000)
        descriptors = [descriptor for descriptor, _ in ready]
        if self._wake_read in descriptors:
            os.read(self._wake_read, 4096)
        if self._status not in descriptors:
            return None
        data = os.read(self._status, protocol.SIZE)
        if not data:
            raise EOFError
        message = protocol.unpack(data)
        if message.kind == protocol.FAILED:
            raise refusal(self._path, message.value, self._directory)
        return message

    def wake(self) -> None:
        """Make `next_message`, in whichever thread it waits, return at once."""
        os.write(self._wake_write, b"w")

    def shepherd_was_killed(self, *, main_reaped: bool) -> bool:
        """Whether EOFError means that the shepherd was killed. After its job, it lives until our last message."""
        if not main_reaped:
            return True
        if not THIS_MACHINE.has_proc():
            return False
        try:
            return read_parentage(THIS_MACHINE, self.shepherd).ending
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return True
        except OSError:
            return False  # not known: no descriptor to read it

    def leave_shepherd(self) -> None:
        """The shepherd was killed: wait until its children have another parent, and stop reading from it."""
        self._poll.unregister(self._status)
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.shepherd, os.WEXITED | os.WNOWAIT)
        if self._pidfd is not None:
            self._poll.register(self._pidfd.fileno(), select.POLLIN)

    def pause(self, timeout: float) -> None:
        """Without a shepherd: return after `timeout` seconds, or when the main process ends or `wake` is called."""
        ready = self._poll.poll(min(timeout, _LONGEST_WAIT) * 1000)
        if self._wake_read in [descriptor for descriptor, _ in ready]:
            os.read(self._wake_read, 4096)

    def main_has_ended(self, running: Sequence[int]) -> bool:
        """Without a shepherd: whether the main process has ended. `running` is used if there is no pidfd."""
        if self._pidfd is None:
            return self.main not in running
        poll = select.poll()
        poll.register(self._pidfd.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def reap_main(self) -> protocol.Message:
        """Without a shepherd: what is known about the main process, which has ended."""
        if self._pidfd is not None:
            self._poll.unregister(self._pidfd.fileno())
        try:
            return protocol.reaped(*os.wait4(self.main, 0))
        except ChildProcessError:
            status = self._status_from_pidfd()
            return protocol.Message(protocol.GONE, self.main, protocol.UNKNOWN if status is None else status)

    def _status_from_pidfd(self) -> int | None:
        """The wait status of the main process once its new parent waited for it (Linux 6.15); None when not known."""
        if self._pidfd is None:
            return None
        deadline = time.monotonic() + _REAPING
        while (status := self._pidfd.wait_status()) is None and time.monotonic() < deadline:
            try:
                if read_parentage(THIS_MACHINE, self.main).alive:
                    break  # the pid belongs to another process by now
            except (OSError, ValueError):
                break
            time.sleep(0.005)
        return self._pidfd.wait_status() if status is None else status

    def launcher_bytes(self) -> int:
        """The size in bytes at which ru_maxrss of the job began."""
        return self._shepherd_bytes() if self._launcher_bytes is None else self._launcher_bytes

    def _shepherd_bytes(self) -> int:
        try:
            return read_status(THIS_MACHINE, self.shepherd).hwm or 0
        except OSError:
            return 0

    def close(self) -> None:
        """End the shepherd. Processes of the job that are left keep running, as children of init."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.shepherd, signal.SIGKILL)
        for descriptor in (self._control, self._status, self._wake_read, self._wake_write):
            os.close(descriptor)
        if self._pidfd is not None:
            self._pidfd.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.shepherd, 0)


def own_maxrss() -> int:
    """The peak resident memory of this process, in bytes."""
    import resource  # late: hardly ever needed

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1024 if sys.platform == "linux" else 1)


def spawn(
    command: list[str],
    *,
    environment: dict[str, str],
    directory: str | None = None,
    streams: Streams | None = None,
    own_session: bool = False,
) -> LaunchedJob:
    """Start `command`, and hold it before its exec. Raises JobmeterError, with the right exit code, if that fails.

    With `own_session` it has no terminal, and signals to our process group do not reach it.
    """
    path, command = with_interpreter(find_program(command[0], environment), command, directory)
    with _pipe() as (control_read, control_write), _pipe() as (status_read, status_write):
        # The child does not need our ends of the pipes, so its own ends get their numbers. Duplicating a descriptor
        # onto itself would make it inheritable too, but not on macOS, nor with glibc before 2.29.
        passed = {control_read: control_write, status_write: status_read}
        arguments = [*map(str, passed.values()), directory or "", path, *command]
        try:
            shepherd, is_compiled = _start(arguments, environment, passed, streams or Streams(), own_session)
        except OSError as error:
            raise refusal(path, error.errno or 0, directory) from None
        launched = LaunchedJob(shepherd, os.dup(control_write), os.dup(status_read), 0, path, directory)
    try:
        message = launched.next_message()
    except EOFError:
        launched.close()
        raise LaunchError(f"{path}: the job's shepherd could not start") from None
    except BaseException:
        launched.close()
        raise
    assert message is not None
    launched.set_main(message.pid, shepherd_is_compiled=is_compiled)
    return launched


def check_descriptors() -> None:
    """Raise LaunchError if too few more files can be opened to follow a job to its end."""
    opened: list[int] = []
    try:
        while len(opened) < _DESCRIPTORS:
            opened += os.pipe()
    except OSError as error:
        most = os.sysconf("SC_OPEN_MAX")
        raise LaunchError(
            f"{error.strerror}: jobmeter needs {_DESCRIPTORS} beside those that are open, and {most} is the limit. "
            "Raise it with `ulimit -n`."
        ) from None
    finally:
        for descriptor in opened:
            os.close(descriptor)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    if min(ends) < 3:
        # Our caller closed one of the three standard streams. Its number stays free, as it would be without us.
        low, ends = (
            ends,
            (fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, 3), fcntl.fcntl(ends[1], fcntl.F_DUPFD_CLOEXEC, 3)),
        )
        for end in low:
            os.close(end)
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def _start(
    arguments: list[str], environment: dict[str, str], passed: dict[int, int], streams: Streams, own_session: bool
) -> tuple[int, bool]:
    """Start a shepherd; returns its pid, and whether it is the compiled one."""
    # Descriptors that posix_spawn duplicates are inherited by this child, and by no other.
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in passed.items()]
    actions += [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in streams.redirected.items()]
    for path in _compiled_shepherds():
        try:
            return _posix_spawn(path, ["jobmeter-job", *arguments], environment, actions, own_session), True
        except (PermissionError, FileNotFoundError):
            continue  # executing memory is forbidden here, or there is no /proc, or the package may not be executed
    script = [sys.executable, "-S", "-E", f"{_HERE}/shepherd.py", *arguments]
    return _posix_spawn(sys.executable, script, environment, actions, own_session), False


def _posix_spawn(
    path: str, argv: list[str], environment: dict[str, str], actions: list[tuple[int, int, int]], own_session: bool
) -> int:
    return os.posix_spawn(
        path,
        argv,
        environment,
        file_actions=actions,
        # A job in a session of its own has no caller whose mask it keeps: what we block is for our own use.
        setsigmask=() if own_session else mask_of_jobs(),
        setsigdef=_DEFAULT_AGAIN,
        setsid=own_session,
    )
