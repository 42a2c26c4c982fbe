"""The shepherd in Python, for machines that the compiled one was not built for.

It has the same protocol as shepherd.c, which explains why there is a shepherd. The `ru_maxrss`
of a process forked from here begins at the size of this interpreter, so it shows no smaller peak.
This file is run by path, as a program, and imports only what it needs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from jobmeter.kernel.subreaper import become_subreaper
from jobmeter.launch import protocol
from jobmeter.launch.protocol import EXITED, FAILED, READY, Message

if TYPE_CHECKING:
    import resource


def main(arguments: list[str]) -> None:
    control, status, directory, program, *argv = arguments
    become_subreaper()
    # A process that ignores SIGCHLD cannot wait for its children. The job gets the disposition that our caller had.
    of_children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    job = os.fork()
    if job == 0:
        signal.signal(signal.SIGCHLD, of_children)
        become_the_job(int(control), int(status), directory, program, argv)
    for number in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
        signal.signal(getattr(signal, f"SIG{number}"), signal.SIG_IGN)
    for descriptor in range(3):
        with contextlib.suppress(OSError):
            os.close(descriptor)
    while reap(job, int(control), int(status)):
        pass
    os.close(int(status))
    os.read(int(control), 1)


def become_the_job(control: int, status: int, directory: str, program: str, argv: list[str]) -> None:
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    os.write(status, Message(READY, os.getpid()).pack())
    if not os.read(control, 1):
        os._exit(125)
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these signals, the job must not
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        if directory:
            os.chdir(directory)
        os.execv(program, argv)
    except OSError as error:
        os.write(status, Message(FAILED, os.getpid(), error.errno or 0).pack())
    os._exit(127)


def next_ended() -> tuple[int, tuple[int, int, resource.struct_rusage] | None]:
    """Wait for a process to end, and leave it a zombie for a last reading; on macOS before Python 3.13, reap it."""
    if not hasattr(os, "waitid"):
        reaped = os.wait4(-1, 0)
        return reaped[0], reaped
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_pid, None


def reap(job: int, control: int, status: int) -> bool:
    """Wait for one process and report it; False when none is left."""
    try:
        pid, reaped = next_ended()
    except ChildProcessError:
        return False
    with contextlib.suppress(OSError):  # a reader that ended does not affect the job
        if pid == job:
            os.write(status, Message(EXITED, job).pack())
            os.read(control, 1)
    _, state, used = reaped or os.wait4(pid, 0)
    with contextlib.suppress(OSError):
        os.write(status, protocol.reaped(pid, state, used).pack())
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
