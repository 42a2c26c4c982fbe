from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobmeter.kernel import hostfs
from jobmeter.kernel.machine import THIS_MACHINE, TICKS_PER_SECOND, Machine

STAT = "cpu  1000 20 300 99999 888 7 6 5 4 3\ncpu0 500 10 150 50000 444 3 3 2 2 1\nintr 1\n"
MEMINFO = "MemTotal:       24684100 kB\nMemFree:         1000 kB\nMemAvailable:   20000000 kB\nHugePages_Total:  0\n"
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo: 7777777   100    0    0    0     0          0         0  7777777     100    0    0    0     0       0          0
  eth0: 1000       10    0    0    0     0          0         0  200         2    0    0    0     0       0          0
wlp2s0:1000000000 10    0    0    0     0          0         0  30         2    0    0    0     0       0          0
"""


def test_busy_time_is_all_but_idle_and_waiting_and_guests_count_once() -> None:
    assert (1000 + 20 + 300 + 7 + 6 + 5) / TICKS_PER_SECOND == hostfs.parse_cpu_time(STAT).busy


@pytest.mark.parametrize("line", ["", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "cpu a b c d e f g h"])
def test_a_malformed_first_line_of_stat_is_quoted(line: str) -> None:
    with pytest.raises(ValueError, match="not the first line of /proc/stat") as refused:
        hostfs.parse_cpu_time(f"{line}\nintr 1\n")
    assert repr(line) in str(refused.value)


def test_context_switches_are_those_of_the_line_ctxt() -> None:
    assert 115315 == hostfs.parse_context_switches(b"cpu  1 2 3\nintr 7 0 0\nctxt 115315\nbtime 1769\n")


@pytest.mark.parametrize("content", [b"", b"cpu 1 2\nbtime 5\n", b"cpu 1\nctxt many\n"])
def test_a_stat_file_without_context_switches_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="no ctxt in /proc/stat"):
        hostfs.parse_context_switches(content)


def test_tasks_are_how_many_there_are_and_the_newest() -> None:
    assert hostfs.Tasks(present=812, newest=11206) == hostfs.parse_tasks("0.20 0.18 0.12 3/812 11206\n")


@pytest.mark.parametrize("content", ["", "0.20 0.18 0.12\n", "0.20 0.18 0.12 3/812 none\n", "0.1 0.1 0.1 three 7\n"])
def test_a_malformed_loadavg_is_quoted(content: str) -> None:
    with pytest.raises(ValueError, match="not /proc/loadavg") as refused:
        hostfs.parse_tasks(content)
    assert repr(content) in str(refused.value)


def test_memory_is_total_and_available_in_bytes() -> None:
    assert (24684100 * 1024, 20000000 * 1024) == hostfs.parse_memory(MEMINFO)


def test_a_malformed_line_of_meminfo_is_quoted() -> None:
    with pytest.raises(ValueError, match="'MemTotal: much kB'"):
        hostfs.parse_memory("MemTotal: much kB\n")


def test_meminfo_without_what_is_needed_says_what() -> None:
    with pytest.raises(ValueError, match="MemAvailable"):
        hostfs.parse_memory("MemTotal: 1 kB\n")


def test_network_bytes_are_those_of_all_interfaces_but_loopback() -> None:
    assert (1000001000, 230) == hostfs.parse_network(NET_DEV)


@pytest.mark.parametrize("line", ["eth1: 1 2 3", "eth1: a b c d e f g h i"])
def test_a_malformed_interface_is_quoted(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of /proc/net/dev") as refused:
        hostfs.parse_network(f"{NET_DEV}{line}\n")
    assert repr(line) in str(refused.value)


def test_a_machine_is_read_from_its_own_proc(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    for name, content in {
        "stat": STAT,
        "meminfo": MEMINFO,
        "net/dev": NET_DEV,
        "loadavg": "0.20 0.18 0.12 1/80 11206\n",
    }.items():
        (tmp_path / name).write_text(content)
    machine = Machine(proc=str(tmp_path))
    assert (0.2, (1000001000, 230)) == (hostfs.read_load1(machine), hostfs.read_network(machine))
    assert (24684100 * 1024, 4684100 * 1024) == (
        hostfs.read_memory_total(machine),
        hostfs.read_memory_used(machine),
    )
    assert 1338 / TICKS_PER_SECOND == hostfs.read_cpu_time(machine).busy


@pytest.mark.skipif(not THIS_MACHINE.has_proc(), reason="no /proc here")
def test_this_machine_s_memory_is_what_sysconf_says() -> None:
    assert os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") == hostfs.read_memory_total(THIS_MACHINE)


def test_hints_of_memory_that_is_in_no_resident_size() -> None:
    content = (
        b"MemTotal: 100 kB\nSwapCached:  5 kB\nSwapTotal:  100 kB\nSwapFree:  70 kB\nShmem:   12780 kB\n"
        b"PageTables:  900 kB\nShmemHugePages: 1 kB\nHugePages_Total: 80\nHugePages_Free: 16\nHugepagesize: 2048 kB\n"
        b"Hugetlb: 163840 kB\nDirectMap4k: 1 kB\n"
    )
    expected = hostfs.MemoryHints(12780 * 1024, 900 * 1024, 30 * 1024, 160 << 20, 128 << 20)
    assert expected == hostfs.parse_memory_hints(content)


def test_hints_that_a_kernel_does_not_give_are_none() -> None:
    assert hostfs.MemoryHints(0, 0, 0, 0, 0) == hostfs.parse_memory_hints(MEMINFO.encode())


def test_a_malformed_hint_is_quoted() -> None:
    with pytest.raises(ValueError, match="Shmem: much"):
        hostfs.parse_memory_hints(b"MemTotal: 1 kB\nShmem: much\n")
