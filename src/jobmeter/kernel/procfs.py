"""The files of /proc/PID (proc(5)): for each a reader, and a parser separate from it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from jobmeter.byte_text import bytes_to_text
from jobmeter.kernel.machine import PAGE_SIZE, Machine, read_bytes, read_text
from jobmeter.light_typing import NamedTuple

Redact = Callable[[list[str]], list[str]]
"""Hides secrets in the words of a command."""

STAT_BYTES = 4096
"""Longer than any stat line: one read is enough."""
_PF_EXITING = 0x4  # include/linux/sched.h


class Identity(NamedTuple):
    """Identifies a process. Pids are reused: a pid alone may be that of another job's process."""

    pid: int
    start: int  # clock ticks since boot


class Stat(NamedTuple):
    """/proc/PID/stat. Times are clock ticks; the `children_` figures are of the children that were waited for."""

    comm: bytes
    state: str
    ppid: int
    minor_faults: int
    children_minor_faults: int
    major_faults: int
    children_major_faults: int
    user: int
    system: int
    children_user: int
    children_system: int
    threads: int
    start: int
    vsize: int
    rss: int
    flags: int = 0

    @property
    def exiting(self) -> bool:
        """Whether the process has begun to exit, by itself or because it was killed."""
        return bool(self.flags & _PF_EXITING)


def parse_stat(line: bytes) -> Stat:
    """Parse a stat line. A process may be named `a) R 1 (b c`: its name ends at the last `)`."""
    head, separator, tail = line.rpartition(b")")
    if not separator:
        raise ValueError(f"not a stat line: {line!r}")
    # f[0] is the state, field 3 of proc(5)
    f = tail.split()
    try:
        return Stat(
            head[head.index(b"(") + 1 :],
            f[0].decode(),
            int(f[1]),
            int(f[7]),
            int(f[8]),
            int(f[9]),
            int(f[10]),
            int(f[11]),
            int(f[12]),
            int(f[13]),
            int(f[14]),
            int(f[17]),
            int(f[19]),
            int(f[20]),
            int(f[21]) * PAGE_SIZE,
            int(f[6]),
        )
    except (ValueError, IndexError):
        raise ValueError(f"not a stat line: {line!r}") from None


def read_stat(machine: Machine, pid: int) -> Stat:
    return parse_stat(read_bytes(f"{machine.proc}/{pid}/stat"))


class Parentage(NamedTuple):
    """The fields of /proc/PID/stat that show to which job a process belongs."""

    state: str
    ppid: int
    session: int
    flags: int
    start: int

    @property
    def alive(self) -> bool:
        return self.state not in "ZX"

    @property
    def ending(self) -> bool:
        """Whether the process has ended, or is exiting: its program does not run any more."""
        return not self.alive or bool(self.flags & _PF_EXITING)


def parse_parentage(line: bytes) -> Parentage:
    # f[0] is the state, field 3 of proc(5)
    f = line.rpartition(b")")[2].split()
    try:
        return Parentage(f[0].decode(), int(f[1]), int(f[3]), int(f[6]), int(f[19]))
    except (ValueError, IndexError):
        raise ValueError(f"not a stat line: {line!r}") from None


def read_parentage(machine: Machine, pid: int) -> Parentage:
    return parse_parentage(read_bytes(f"{machine.proc}/{pid}/stat"))


class ProcessStatus(NamedTuple):
    """The fields of /proc/PID/status that no cheaper file has; bytes. A zombie has no memory lines."""

    hwm: int | None
    swap: int | None
    context_switches: int
    shmem: int = 0  # mapped and resident
    page_tables: int = 0
    hugetlb: int = 0  # mapped huge pages of the machine's pools; not part of the resident size


_SWITCHES = (b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches")


def parse_status(content: bytes) -> ProcessStatus:
    def kib(name: bytes) -> int | None:
        line = _status_line(content, name)
        return None if line is None else _kib(line)

    switches = [line for name in _SWITCHES if (line := _status_line(content, name)) is not None]
    return ProcessStatus(
        kib(b"VmHWM"),
        kib(b"VmSwap"),
        sum(_number(line.partition(b":")[2], line) for line in switches),
        kib(b"RssShmem") or 0,
        kib(b"VmPTE") or 0,
        kib(b"HugetlbPages") or 0,
    )


def _status_line(content: bytes, name: bytes) -> bytes | None:
    """The line `name`, one of some 60, found without reading each; None if there is no such line."""
    # Only a newline ends a line: in the name of a process, the kernel escapes newlines, but not carriage returns.
    start = content.find(b"\n" + name + b":") + 1
    return content[start : content.find(b"\n", start)] if start else None


def read_status(machine: Machine, pid: int) -> ProcessStatus:
    return parse_status(read_bytes(f"{machine.proc}/{pid}/status"))


class ProcessIo(NamedTuple):
    """/proc/PID/io, including the children that were waited for. Bytes are those of the disk, not of the cache."""

    read_bytes: int
    write_bytes: int
    read_ops: int
    write_ops: int


_IO_NAMES = [b"syscr:", b"syscw:", b"read_bytes:", b"write_bytes:"]  # after rchar and wchar, in every kernel


def parse_io(content: bytes) -> ProcessIo:
    try:
        names, values = (words := content.split())[::2], words[1::2]
        if names[2:6] != _IO_NAMES:
            raise ValueError
        return ProcessIo(int(values[4]), int(values[5]), int(values[2]), int(values[3]))
    except (ValueError, IndexError):
        raise ValueError(f"not an io file: {content!r}") from None


def read_io(machine: Machine, pid: int) -> ProcessIo:
    return parse_io(read_bytes(f"{machine.proc}/{pid}/io"))


class SmapsRollup(NamedTuple):
    """/proc/PID/smaps_rollup, in bytes. PSS has a share of each shared page; USS has only unshared pages."""

    pss: int
    uss: int
    shmem: int = 0  # the part of `pss` in shared memory; Linux 5.4
    private_hugetlb: int = 0  # not part of `pss`
    shared_hugetlb: int = 0


def parse_smaps_rollup(content: bytes) -> SmapsRollup:
    pss, private, shmem, private_hugetlb, shared_hugetlb = None, 0, 0, 0, 0
    for line in content.splitlines():
        if line.startswith(b"Pss:"):
            pss = _kib(line)
        elif line.startswith(b"Private_"):
            private += _kib(line)
            if line.startswith(b"Private_Hugetlb:"):
                private_hugetlb = _kib(line)
        elif line.startswith(b"Pss_Shmem:"):
            shmem = _kib(line)
        elif line.startswith(b"Shared_Hugetlb:"):
            shared_hugetlb = _kib(line)
    if pss is None:
        raise ValueError(f"no Pss in smaps_rollup: {content!r}")
    return SmapsRollup(pss, private, shmem, private_hugetlb, shared_hugetlb)


class MemoryKinds(NamedTuple):
    """The resident memory of a process by kind, in bytes."""

    anonymous: int
    file: int
    shared: int  # shared memory: tmpfs, memfds, SysV segments


def parse_resident_kinds(content: bytes) -> MemoryKinds:
    """Parse /proc/PID/status. All are 0 for a zombie."""
    lines = (_status_line(content, name) for name in (b"RssAnon", b"RssFile", b"RssShmem"))
    return MemoryKinds(*[0 if line is None else _kib(line) for line in lines])


def read_resident_kinds(machine: Machine, pid: int) -> MemoryKinds:
    return parse_resident_kinds(read_bytes(f"{machine.proc}/{pid}/status"))


def read_smaps_rollup(machine: Machine, pid: int) -> SmapsRollup:
    path = f"{machine.proc}/{pid}/smaps_rollup"
    content = read_bytes(path)
    if not content:  # the process has just ended: ESRCH since Linux 4.19, before that an empty file
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH), path)
    return parse_smaps_rollup(content)


def parse_cgroup(content: str) -> dict[str, str]:
    """Return controller → path; the key `""` is the unified (v2) hierarchy."""
    groups = {}
    # Not splitlines(): a group's name may hold any character but a newline.
    for line in filter(None, content.split("\n")):
        try:
            _, controllers, path = line.split(":", 2)
        except ValueError:
            raise ValueError(f"not a line of /proc/PID/cgroup: {line!r}") from None
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def read_cgroup(machine: Machine, pid: int | str) -> dict[str, str]:
    return parse_cgroup(read_text(f"{machine.proc}/{pid}/cgroup"))


def parse_cmdline(content: bytes, comm: bytes, redact: Redact = list) -> str:
    """The command line, its words separated by spaces; the name of the process in brackets if there is none."""
    words = [os.fsdecode(word) for word in content.split(b"\0") if word]
    # Redacted before it is truncated: the cut may be in the middle of a secret.
    return command_text(os.fsencode(" ".join(redact(words))) if words else b"[" + comm + b"]")


def read_cmdline(machine: Machine, pid: int, comm: bytes, redact: Redact = list) -> str:
    return parse_cmdline(read_bytes(f"{machine.proc}/{pid}/cmdline"), comm, redact)


def command_text(raw: bytes, limit: int = 300) -> str:
    """The text of a command line, truncated to `limit` characters."""
    text = bytes_to_text(raw)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def parse_environment(content: bytes) -> dict[str, str]:
    """The variables that a process was started with."""
    pairs = (entry.partition(b"=") for entry in content.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, separator, value in pairs if separator}


def read_environment(machine: Machine, pid: int) -> dict[str, str]:
    return parse_environment(read_bytes(f"{machine.proc}/{pid}/environ"))


def parse_inner_pid(content: bytes, pid: int) -> int:
    """From /proc/PID/status: the pid in the innermost pid namespace of the process; `pid` if there is no such line."""
    line = _status_line(content, b"NSpid")
    return pid if line is None else _number(line.split()[-1], line)


def read_inner_pid(machine: Machine, pid: int) -> int:
    """The pid that the process itself sees; `pid` if the process has ended."""
    try:
        return parse_inner_pid(read_bytes(f"{machine.proc}/{pid}/status"), pid)
    except OSError:
        return pid


def thread_ids(machine: Machine, pid: int) -> list[int]:
    """The threads of a process, as /proc/PID/task lists them."""
    return [int(name) for name in os.listdir(f"{machine.proc}/{pid}/task")]


def parse_schedstat(content: bytes) -> int:
    """From `schedstat` of a thread: how often it was put on a CPU."""
    try:
        return int(content.split()[2])
    except (ValueError, IndexError):
        raise ValueError(f"not a schedstat file: {content!r}") from None


def read_schedstat(machine: Machine, pid: int, thread: int) -> int:
    return parse_schedstat(read_bytes(f"{machine.proc}/{pid}/task/{thread}/schedstat"))


def parse_run_delay(content: bytes) -> int:
    """From `schedstat` of a thread: nanoseconds in which it was ready to run and had no CPU."""
    try:
        return int(content.split()[1])
    except (ValueError, IndexError):
        raise ValueError(f"not a schedstat file: {content!r}") from None


def read_run_delay(machine: Machine, pid: int, thread: int) -> int:
    return parse_run_delay(read_bytes(f"{machine.proc}/{pid}/task/{thread}/schedstat"))


class ThreadReading(NamedTuple):
    """One thread, from its `schedstat` and `stat`."""

    thread: int
    name: str
    run_ns: int  # on a CPU
    wait_ns: int  # ready to run, without a CPU
    core: int  # the CPU that it last ran on


def parse_thread(thread: int, schedstat: bytes, stat: bytes) -> ThreadReading:
    head, _, tail = stat.rpartition(b")")
    try:
        run, wait, _ = schedstat.split()
        name = head[head.index(b"(") + 1 :]
        return ThreadReading(thread, bytes_to_text(name), int(run), int(wait), int(tail.split()[36]))
    except (ValueError, IndexError):
        raise ValueError(f"not a schedstat and a stat file: {schedstat!r}, {stat!r}") from None


def read_thread(machine: Machine, pid: int, thread: int) -> ThreadReading:
    folder = f"{machine.proc}/{pid}/task/{thread}"
    return parse_thread(thread, read_bytes(f"{folder}/schedstat"), read_bytes(f"{folder}/stat"))


def is_ending(machine: Machine, pid: int) -> bool:
    """Whether the process is ending, or has ended."""
    try:
        stat = read_stat(machine, pid)
    except (OSError, ValueError):
        return True
    return stat.state in "ZX" or stat.exiting


def last_pid(machine: Machine) -> int:
    """The number of the newest process or thread of the machine: if it is unchanged, nothing was forked."""
    return int(read_text(f"{machine.proc}/loadavg").split()[-1])


def _kib(line: bytes) -> int:
    """The bytes of a line like `VmHWM:     1234 kB`."""
    return _number(line.partition(b":")[2].removesuffix(b" kB"), line) * 1024


def _number(value: bytes, line: bytes) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"no number in {line!r}") from None
