"""What the kernel reports to a process about itself, read at the start and the end of a piece of its work.

All functions are cheap: some microseconds per call.
"""

from __future__ import annotations

import functools
import os
import resource
import signal

from jobmeter.kernel.machine import Machine, read_bytes, write_text
from jobmeter.kernel.procfs import thread_ids
from jobmeter.light_typing import NamedTuple

_RESET_HIGH_MARK = "5"  # of /proc/PID/clear_refs, proc(5), since Linux 4.0


class OwnMemory(NamedTuple):
    """Resident memory of this process, in bytes."""

    resident: int
    high_mark: int  # the high-water mark, since the process began or the mark was reset


def parse_own_memory(status: bytes) -> OwnMemory:
    """Parse /proc/self/status. Raises ValueError if it has no memory lines."""
    return OwnMemory(_kib(status, b"\nVmRSS:"), _kib(status, b"\nVmHWM:"))


def read_own_memory(machine: Machine) -> OwnMemory:
    return parse_own_memory(_read_small(f"{machine.proc}/self/status"))


def read_own_resident(machine: Machine) -> int:
    """The resident memory alone, in a third of the time of `read_own_memory`."""
    return int(_read_small(f"{machine.proc}/self/statm").split(None, 2)[1]) * resource.getpagesize()


def reset_high_mark(machine: Machine) -> bool:
    """Reset VmHWM to the present size; False if the kernel does not allow it."""
    try:
        write_text(f"{machine.proc}/self/clear_refs", _RESET_HIGH_MARK)
    except OSError:
        return False
    return True


def own_usage() -> resource.struct_rusage:
    """The usage of all threads of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF)


def page_faults(usage: resource.struct_rusage) -> int:
    """The number of page faults: while it is unchanged, the resident memory does not grow."""
    return usage.ru_minflt + usage.ru_majflt


class OwnIo(NamedTuple):
    """Disk I/O, in bytes."""

    read_bytes: int
    write_bytes: int


def read_own_io(machine: Machine, own: resource.struct_rusage, children: resource.struct_rusage) -> OwnIo | None:
    """Disk I/O of this process and of the children it waited for; None where the kernel does not count it.

    The counters are those of /proc/self/io, but without opening it: getrusage(2) has them in blocks of 512 bytes.
    """
    if not _counts_io(machine):
        return None
    return OwnIo((own.ru_inblock + children.ru_inblock) << 9, (own.ru_oublock + children.ru_oublock) << 9)


@functools.cache
def _counts_io(machine: Machine) -> bool:
    return os.path.exists(f"{machine.proc}/self/io")


def has_children() -> bool:
    """Whether this process has a child, running or ended, that was not waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def thread_count(machine: Machine) -> int:
    """The number of threads, in a third of the time that it takes to list them. Raises OSError if there is no /proc."""
    return os.stat(f"{machine.proc}/self/task").st_nlink - 2  # one directory per thread, plus `.` and `..`


def is_forked(machine: Machine) -> bool:
    """Whether this process is a fork of its parent without an exec, as in `multiprocessing`, and shares memory with it.

    After an exec, code and stack are at other addresses, because addresses are random.
    """
    try:
        own, parent = (_addresses(f"{machine.proc}/{pid}/stat") for pid in ("self", os.getppid()))
    except (OSError, IndexError):
        return False
    return own == parent


def drops_children() -> bool:
    """Whether SIGCHLD is ignored: then the kernel reaps the children, and their usage is lost."""
    return signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN


def own_children(machine: Machine) -> frozenset[int]:
    """The children of all threads of this process; empty where the kernel does not list them."""
    pids: set[int] = set()
    for thread in thread_ids(machine, os.getpid()):
        try:
            pids.update(map(int, read_bytes(f"{machine.proc}/self/task/{thread}/children").split()))
        except OSError:
            continue  # the thread has ended, or the kernel was built without CONFIG_PROC_CHILDREN
    return frozenset(pids)


def _read_small(path: str) -> bytes:
    """The content of a kernel file that is small enough for one read(2)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 16384)
    finally:
        os.close(descriptor)


def _addresses(stat_path: str) -> tuple[bytes, bytes]:
    """`startcode` and `startstack`, fields 26 and 28 of proc(5)."""
    fields = _read_small(stat_path).rpartition(b")")[2].split()
    return fields[23], fields[25]


def _kib(status: bytes, name: bytes) -> int:
    start = status.find(name)
    if start < 0:
        raise ValueError(f"no {name.decode().strip()} in the status of this process")
    return int(status[start + len(name) : status.index(b"kB", start)]) << 10
