"""The messages between the shepherd and jobmeter. Keep in step with shepherd.c."""

from __future__ import annotations

import struct
import sys

from jobmeter.light_typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import resource

READY = 1  # the job waits before its exec; `pid` is its process
FAILED = 2  # it could not be executed; `value` is the errno
EXITED = 3  # it ended and was not reaped yet: the moment for a last reading
REAPED = 4  # the process `pid` was waited for; `value` is its wait status
GONE = 5  # never from a shepherd: the main process ended without one; `value` is its wait status, UNKNOWN if not known

UNKNOWN = -1

_LAYOUT = struct.Struct("=4i7q")
SIZE = _LAYOUT.size
GO = b"g"  # any byte: the shepherd may take its next step (execute the job, reap it, exit)


class Message(NamedTuple):
    kind: int
    pid: int
    value: int = 0
    unused: int = 0
    user_us: int = 0
    system_us: int = 0
    maxrss_kib: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0

    def pack(self) -> bytes:
        return _LAYOUT.pack(*self)


def add(sum_so_far: Message | None, message: Message) -> Message:
    """The sum of what two processes used; for memory, the larger high-water mark."""
    if sum_so_far is None:
        return message
    added = [a + b for a, b in zip(sum_so_far[4:], message[4:])]
    added[2] = max(sum_so_far.maxrss_kib, message.maxrss_kib)
    return Message(REAPED, 0, 0, 0, *added)


def reaped(pid: int, status: int, used: resource.struct_rusage) -> Message:
    """The message about a process that wait4 returned."""
    return Message(
        REAPED,
        pid,
        status,
        0,
        round(used.ru_utime * 1e6),
        round(used.ru_stime * 1e6),
        used.ru_maxrss // (1 if sys.platform == "linux" else 1024),
        used.ru_minflt,
        used.ru_majflt,
        used.ru_nvcsw,
        used.ru_nivcsw,
    )


def unpack(data: bytes) -> Message:
    return Message(*_LAYOUT.unpack(data))
