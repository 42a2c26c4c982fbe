"""The machine to read: where its /proc and /sys are, and its constants."""

from __future__ import annotations

import os

from jobmeter.light_typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


class Machine(NamedTuple):
    """The roots of the kernel's file systems. A test can point them to its own folder."""

    proc: str = "/proc"
    sys: str = "/sys"

    def has_proc(self) -> bool:
        return os.path.exists(f"{self.proc}/self/stat")

    def shows_own_pids(self) -> bool:
        """Whether /proc is of the pid namespace of this process, and not of another one with other pids."""
        try:
            return os.readlink(f"{self.proc}/self") == str(os.getpid())
        except OSError:
            return os.path.isdir(f"{self.proc}/self")  # a folder of a test


THIS_MACHINE = Machine()


def read_bytes(path: str) -> bytes:
    """Return the whole content of a kernel file. Raises OSError if it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def read_text(path: str) -> str:
    return read_bytes(path).decode(errors="surrogateescape")


def write_text(path: str, text: str) -> None:
    """Write a kernel file in one call, as the kernel expects it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def cpu_count() -> int:
    """The number of CPUs that this process may use; a job started from here cannot keep more busy."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
