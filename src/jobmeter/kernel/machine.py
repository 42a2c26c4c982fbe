"""The machine to read: where its /proc and /sys are, and its constants."""

from __future__ import annotations

import os

from jobmeter.light_typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


class Machine(NamedTuple):
    """Roots of the kernel's file systems, so that a test can point at a folder of its own."""

    proc: str = "/proc"
    sys: str = "/sys"

    def has_proc(self) -> bool:
        return os.path.exists(f"{self.proc}/self/stat")

    def shows_own_pids(self) -> bool:
        """Whether /proc numbers processes as this process does, and is not of another pid namespace."""
        try:
            return os.readlink(f"{self.proc}/self") == str(os.getpid())
        except OSError:
            return os.path.isdir(f"{self.proc}/self")  # a folder of a test


THIS_MACHINE = Machine()


def read_bytes(path: str) -> bytes:
    """Return the whole of a kernel file; OSError when it cannot be read."""
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
    """CPUs this process may use: more than these a job started from here cannot keep busy."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
