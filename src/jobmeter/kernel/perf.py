"""perf events of a process and of everything it will start (perf_event_open(2)).

Opened on a job at its gate with `inherit` and `enable_on_exec`, a counter begins
with the job's first instruction and is carried into every fork, waited for or not.
"""

from __future__ import annotations

import ctypes
import errno
import os

from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine, read_text

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


class _Attributes(ctypes.Structure):
    """struct perf_event_attr, its first 64 bytes (PERF_ATTR_SIZE_VER0): all that counting needs."""

    _fields_ = [
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("wakeup_events", ctypes.c_uint32),
        ("bp_type", ctypes.c_uint32),
        ("config1", ctypes.c_uint64),
    ]


class Event:
    """One open counter over a process and its descendants."""

    def __init__(self, name: str, descriptor: int, user_only: bool) -> None:
        self.name = name
        self.user_only = user_only
        self._descriptor = descriptor

    def read(self) -> int:
        """The count so far, descendants included, dead and alive.

        Hardware counters that had to share the CPU's registers are scaled up to their full time.
        """
        count, enabled, running = memoryview(os.read(self._descriptor, 24)).cast("Q")
        if running and running < enabled:
            return int(count * enabled / running)
        return int(count)

    def close(self) -> None:
        os.close(self._descriptor)


def open_event(name: str, pid: int) -> Event:
    """Count `name` from the next exec of `pid` on; NoData where the machine does not allow it."""
    number = _SYSCALL.get(os.uname().machine)
    if number is None:
        raise NoData(f"perf events are not known for {os.uname().machine}")
    try:
        return Event(name, _open(number, name, pid, user_only=False), user_only=False)
    except PermissionError:
        pass
    except OSError as error:
        raise NoData(_why_not(name, error)) from None
    try:
        return Event(name, _open(number, name, pid, user_only=True), user_only=True)
    except OSError as error:
        raise NoData(_why_not(name, error)) from None


def _open(number: int, name: str, pid: int, *, user_only: bool) -> int:
    kind, config = _EVENTS[name]
    flags = _DISABLED | _INHERIT | _ENABLE_ON_EXEC
    if user_only:
        # What perf_event_paranoid 2 leaves to ordinary users. task-clock counts kernel time all the same.
        flags |= _EXCLUDE_KERNEL | _EXCLUDE_HV
    attributes = _Attributes(type=kind, size=64, config=config, read_format=_TIMES, flags=flags)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.syscall(number, ctypes.byref(attributes), pid, -1, -1, ctypes.c_ulong(_CLOEXEC))
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
