"""perf events of a process and of everything it will start (perf_event_open(2)).

A counter is opened on a job before its exec, with `inherit` and `enable_on_exec`. It begins
with the job's first instruction, and every fork inherits it, waited for or not.
"""

from __future__ import annotations

import errno
import functools
import os
from struct import Struct

from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine, read_text
from jobmeter.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctypes import CDLL

_SYSCALL = {"x86_64": 298, "aarch64": 241, "ppc64le": 319, "s390x": 331, "riscv64": 241}
_HARDWARE, _SOFTWARE = 0, 1
_EVENTS = {
    # name: (type, config) of linux/perf_event.h
    "task_clock": (_SOFTWARE, 1),
    "page_faults": (_SOFTWARE, 2),
    "context_switches": (_SOFTWARE, 3),
    "cycles": (_HARDWARE, 0),
    "instructions": (_HARDWARE, 1),
}
_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HV, _ENABLE_ON_EXEC = 1, 1 << 1, 1 << 5, 1 << 6, 1 << 12
_TIMES = 1 | 2  # PERF_FORMAT_TOTAL_TIME_ENABLED | _RUNNING
_CLOEXEC = 8


_ATTRIBUTES = Struct("=2I5Q2IQ")
"""The first 64 bytes of struct perf_event_attr (PERF_ATTR_SIZE_VER0), enough for counting: type, size, config,
sample_period, sample_type, read_format, flags, wakeup_events, bp_type, config1."""


class Event:
    """One counter of some threads and, if it is inherited, of everything that they start from now on."""

    def __init__(self, descriptors: list[int], user_only: bool) -> None:
        self.user_only = user_only
        self._descriptors = descriptors

    def read(self) -> int:
        """The count so far, including descendants, ended or not.

        If hardware counters had to share the CPU's registers, their counts are scaled up to the full time.
        """
        total = 0
        for descriptor in self._descriptors:
            count, enabled, running = memoryview(os.read(descriptor, 24)).cast("Q")
            total += int(count * enabled / running) if 0 < running < enabled else count
        return total

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


def open_event(name: str, *threads: int, at_exec: bool = True, inherit: bool = True) -> Event:
    """Count event `name` in these threads, from their next exec or from now. Raises NoData if that is not allowed.

    Threads that have already ended are skipped, unless all have. Without `inherit`, what they start is not counted.
    """
    number = _syscall_number()
    flags = (_INHERIT if inherit else 0) | (_DISABLED | _ENABLE_ON_EXEC if at_exec else 0)
    try:
        return Event(_open_all(number, name, threads, flags, user_only=False), user_only=False)
    except PermissionError:
        pass
    except OSError as error:
        raise NoData(_why_not(name, error)) from None
    try:
        return Event(_open_all(number, name, threads, flags, user_only=True), user_only=True)
    except OSError as error:
        raise NoData(_why_not(name, error)) from None


def _open_all(number: int, name: str, threads: tuple[int, ...], flags: int, *, user_only: bool) -> list[int]:
    if user_only:
        # perf_event_paranoid 2 allows this to ordinary users. task-clock still includes kernel time.
        flags |= _EXCLUDE_KERNEL | _EXCLUDE_HV
    descriptors: list[int] = []
    try:
        for thread in threads:
            try:
                descriptors.append(_open(number, name, thread, flags))
            except ProcessLookupError:
                continue
        if not descriptors:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    except OSError:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return descriptors


@functools.cache
def _syscall_number() -> int:
    machine = os.uname().machine
    if machine not in _SYSCALL:
        raise NoData(f"perf events are not known for {machine}")
    return _SYSCALL[machine]


@functools.cache
def _libc() -> CDLL:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _open(number: int, name: str, thread: int, flags: int) -> int:
    import ctypes

    kind, config = _EVENTS[name]
    attributes = _ATTRIBUTES.pack(kind, _ATTRIBUTES.size, config, 0, 0, _TIMES, flags, 0, 0, 0)
    descriptor: int = _libc().syscall(number, attributes, thread, -1, -1, ctypes.c_ulong(_CLOEXEC))
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def _why_not(name: str, error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return f"this CPU or virtual machine does not count {name.replace('_', ' ')}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "the kernel does not allow it: kernel.perf_event_paranoid is above 2, or a sandbox forbids it"
    if error.errno == errno.ENOSYS:
        return "this kernel has no perf events"
    return f"perf_event_open: {error.strerror}"


def paranoid_level(machine: Machine) -> int | None:
    """kernel.perf_event_paranoid: above 2, ordinary users get no events."""
    try:
        return int(read_text(f"{machine.proc}/sys/kernel/perf_event_paranoid"))
    except (OSError, ValueError):
        return None
