"""Files of /proc about the whole machine: stat, meminfo, loadavg, net/dev."""

from __future__ import annotations

from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine, read_bytes, read_text
from jobmeter.light_typing import NamedTuple


class CpuTime(NamedTuple):
    """Seconds, all cores together."""

    busy: float  # everything except idle and waiting for disks
    stolen: float  # the part of `busy` in which a hypervisor used the CPUs for others


def parse_cpu_time(content: str) -> CpuTime:
    """Parse the first line of /proc/stat."""
    line = content.partition("\n")[0]
    name, *numbers = line.split() or [""]
    try:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, numbers[:8])
    except ValueError:
        name = ""
    if name != "cpu":
        raise ValueError(f"not the first line of /proc/stat: {line!r}")
    busy = user + nice + system + irq + softirq + steal
    return CpuTime(busy / TICKS_PER_SECOND, steal / TICKS_PER_SECOND)


def read_cpu_time(machine: Machine) -> CpuTime:
    return parse_cpu_time(read_text(f"{machine.proc}/stat"))


def parse_context_switches(content: bytes) -> int:
    """From /proc/stat: how often any CPU changed from one task to another since boot."""
    start = content.find(b"\nctxt ")
    line = content[start + 1 : content.find(b"\n", start + 1)] if start >= 0 else b""
    try:
        return int(line.partition(b" ")[2])
    except ValueError:
        raise ValueError(f"no ctxt in /proc/stat: {line!r}") from None


def read_context_switches(machine: Machine) -> int:
    return parse_context_switches(read_bytes(f"{machine.proc}/stat"))


class Tasks(NamedTuple):
    """The tasks of the machine (processes and threads), from /proc/loadavg. Each task has a number, its pid or tid."""

    present: int
    newest: int  # the number that was assigned last; after the highest, numbers start over


def parse_tasks(content: str) -> Tasks:
    try:
        *_, counts, newest = content.split()
        return Tasks(int(counts.partition("/")[2]), int(newest))
    except ValueError:
        raise ValueError(f"not /proc/loadavg: {content!r}") from None


def read_tasks(machine: Machine) -> Tasks:
    return parse_tasks(read_text(f"{machine.proc}/loadavg"))


def read_highest_pid(machine: Machine) -> int:
    """The limit of task numbers (pid_max), after which they start over."""
    return int(read_text(f"{machine.proc}/sys/kernel/pid_max"))


def parse_memory(content: str) -> tuple[int, int]:
    """From /proc/meminfo: (total, available) bytes."""
    sizes = {}
    for line in content.splitlines():
        name, _, value = line.partition(":")
        if name in ("MemTotal", "MemAvailable"):
            try:
                sizes[name] = int(value.removesuffix(" kB")) * 1024
            except ValueError:
                raise ValueError(f"not a line of /proc/meminfo: {line!r}") from None
    try:
        return sizes["MemTotal"], sizes["MemAvailable"]
    except KeyError as missing:
        raise ValueError(f"no {missing} in meminfo") from None


def read_memory_used(machine: Machine) -> int:
    total, available = parse_memory(read_text(f"{machine.proc}/meminfo"))
    return total - available


def read_memory_total(machine: Machine) -> int:
    return parse_memory(read_text(f"{machine.proc}/meminfo"))[0]


class MemoryHints(NamedTuple):
    """Bytes of memory of the whole machine that may be in no process's resident size, from /proc/meminfo."""

    shmem: int  # memfds, files on tmpfs, SysV segments; mapped or not
    page_tables: int
    swapped: int
    hugetlb_pool: int  # huge pages of all sizes, used or not
    hugetlb_used: int  # huge pages in use, of the default size only


def parse_memory_hints(content: bytes) -> MemoryHints:
    """Parse /proc/meminfo. A line that an old kernel or another system does not have counts as 0."""

    def number(name: bytes) -> int:
        start = content.find(b"\n" + name + b":")
        if start < 0:
            return 0
        line = content[start + 1 : content.find(b"\n", start + 1)]
        try:
            return int(line.partition(b":")[2].removesuffix(b" kB"))
        except ValueError:
            raise ValueError(f"not a line of /proc/meminfo: {line!r}") from None

    # SwapCached is not subtracted: pages that are being swapped out are in it, but in no process's resident size.
    swapped = number(b"SwapTotal") - number(b"SwapFree")
    pool = number(b"HugePages_Total") * number(b"Hugepagesize")
    free = number(b"HugePages_Free") * number(b"Hugepagesize")
    return MemoryHints(
        number(b"Shmem") * 1024,
        number(b"PageTables") * 1024,
        max(swapped, 0) * 1024,
        max(number(b"Hugetlb"), pool) * 1024,  # Hugetlb exists since Linux 4.19
        (pool - free) * 1024,
    )


def read_memory_hints(machine: Machine) -> MemoryHints:
    return parse_memory_hints(read_bytes(f"{machine.proc}/meminfo"))


def read_load1(machine: Machine) -> float:
    return float(read_text(f"{machine.proc}/loadavg").split()[0])


Traffic = dict[str, tuple[int, int]]
"""Interface → bytes received and sent since it was made; loopback is left out."""


def parse_interfaces(content: str) -> Traffic:
    """Parse /proc/net/dev."""
    traffic = {}
    for line in content.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            continue
        try:
            fields = [int(number) for number in numbers.split()]
            traffic[name.strip()] = fields[0], fields[8]
        except (ValueError, IndexError):
            raise ValueError(f"not a line of /proc/net/dev: {line!r}") from None
    return traffic


def parse_network(content: str) -> tuple[int, int]:
    """From /proc/net/dev: bytes (received, sent) by all interfaces but loopback."""
    traffic = parse_interfaces(content).values()
    return sum(received for received, _ in traffic), sum(sent for _, sent in traffic)


def read_network(machine: Machine) -> tuple[int, int]:
    return parse_network(read_text(f"{machine.proc}/net/dev"))
