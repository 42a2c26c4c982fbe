from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobmeter.kernel import procfs
from jobmeter.kernel.machine import PAGE_SIZE, THIS_MACHINE, Machine
from jobmeter.kernel.procfs import ProcessIo, ProcessStatus, SmapsRollup
from tests.parts import need_root

needs_proc = pytest.mark.skipif(not THIS_MACHINE.has_proc(), reason="no /proc here")

AFTER_THE_NAME = (
    b" S 41 42 40 34816 42 4194304 1001 2002 3 4 55 66 77 88 20 0 9 0 123456 8192000 250 18446744073709551615"
    b" 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)


@pytest.mark.parametrize(
    "name",
    [b"bash", b"tmux: server", b"(sd-pam)", b"a) R 1 (b c", b")", b"", b"two\nlines", b"caf\xe9", b"\rVmHWM:"],
)
def test_a_process_named_like_a_stat_line_is_parsed(name: bytes) -> None:
    stat = procfs.parse_stat(b"42 (" + name + b")" + AFTER_THE_NAME)
    assert (name, "S", 41, 123456) == (stat.comm, stat.state, stat.ppid, stat.start)


def test_every_field_of_a_stat_line_is_the_one_of_the_manual() -> None:
    expected = procfs.Stat(
        comm=b"x", state="S", ppid=41, minor_faults=1001, children_minor_faults=2002, major_faults=3,
        children_major_faults=4, user=55, system=66, children_user=77, children_system=88, threads=9,
        start=123456, vsize=8192000, rss=250 * PAGE_SIZE, flags=4194304,
    )  # fmt: skip
    assert expected == procfs.parse_stat(b"42 (x)" + AFTER_THE_NAME)


@pytest.mark.parametrize("line", [b"", b"42 bash S 1", b"42 bash) S 1 2", b"42 (bash) S 1 2", b"42 (bash) S one" * 9])
def test_a_malformed_stat_line_is_quoted(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a stat line") as refused:
        procfs.parse_stat(line)
    assert repr(line) in str(refused.value)


@needs_proc
@pytest.mark.parametrize("name", [b"a) R 1 (b c", b"new\nline", b"\rVmHWM:", b"\xff\xfe"])
def test_the_kernel_may_name_a_process_anything(name: bytes) -> None:
    program = f"import ctypes; ctypes.CDLL(None).prctl(15, {name!r}); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        stat, status = procfs.read_stat(THIS_MACHINE, child.pid), procfs.read_status(THIS_MACHINE, child.pid)
        child.kill()
    assert (name, os.getpid()) == (stat.comm, stat.ppid)
    # It is an interpreter: a few MiB, whatever its name claims.
    assert status.hwm is not None
    assert 2**21 < status.hwm < 2**28


STATUS = b"""Name:\tbash
State:\tS (sleeping)
VmPeak:\t   99999 kB
VmHWM:\t    5120 kB
VmRSS:\t    4096 kB
RssShmem:\t      40 kB
VmPTE:\t      60 kB
VmSwap:\t      12 kB
HugetlbPages:\t    2048 kB
Threads:\t1
voluntary_ctxt_switches:\t150
nonvoluntary_ctxt_switches:\t15
"""
ZOMBIE_STATUS = b"""Name:\tbash
State:\tZ (zombie)
Threads:\t1
voluntary_ctxt_switches:\t7
nonvoluntary_ctxt_switches:\t0
"""


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (STATUS, ProcessStatus(5120 * 1024, 12 * 1024, 165, 40 * 1024, 60 * 1024, 2048 * 1024)),
        (ZOMBIE_STATUS, ProcessStatus(None, None, 7)),
        (ZOMBIE_STATUS.replace(b"bash", b"\rVmHWM:9 kB"), ProcessStatus(None, None, 7)),
        (ZOMBIE_STATUS.replace(b"bash", b"\\nVmHWM:9 kB"), ProcessStatus(None, None, 7)),
    ],
    ids=["running", "zombie", "name with a carriage return", "name with a newline"],
)
def test_a_status_file_gives_what_it_has(content: bytes, expected: ProcessStatus) -> None:
    assert expected == procfs.parse_status(content)


@pytest.mark.parametrize("line", [b"VmHWM:", b"VmHWM:\tmuch kB", b"VmSwap:\t kB", b"voluntary_ctxt_switches:\tx"])
def test_a_malformed_status_line_is_quoted(line: bytes) -> None:
    with pytest.raises(ValueError, match="no number in") as refused:
        procfs.parse_status(b"Name:\tx\n" + line + b"\n")
    assert repr(line) in str(refused.value)


@needs_proc
def test_a_real_zombie_has_no_memory_and_is_no_error() -> None:
    zombie = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
    try:
        status, stat = procfs.read_status(THIS_MACHINE, zombie), procfs.read_stat(THIS_MACHINE, zombie)
        with pytest.raises(OSError, match="No such process"):
            procfs.read_smaps_rollup(THIS_MACHINE, zombie)
    finally:
        os.waitpid(zombie, 0)
    assert (None, None, "Z", 0) == (status.hwm, status.swap, stat.state, stat.rss)


IO = b"""rchar: 3980
wchar: 120
syscr: 9
syscw: 4
read_bytes: 8192
write_bytes: 4096
cancelled_write_bytes: 0
"""


def test_io_counts_the_disk_and_the_calls_and_not_the_cache() -> None:
    assert ProcessIo(read_bytes=8192, write_bytes=4096, read_ops=9, write_ops=4) == procfs.parse_io(IO)


@pytest.mark.parametrize("content", [b"", b"rchar: 1\n", IO.replace(b"8192", b"lots"), IO.replace(b": 9", b"=9")])
def test_a_malformed_io_file_is_quoted(content: bytes) -> None:
    with pytest.raises(ValueError, match="not an io file") as refused:
        procfs.parse_io(content)
    assert repr(content) in str(refused.value)


def test_io_of_another_user_s_process_is_an_os_error() -> None:
    need_root("to become another user")
    reader = os.fork()
    if reader == 0:
        refused = False
        try:
            os.setuid(65534)
            procfs.read_io(THIS_MACHINE, 1)
        except PermissionError:
            refused = True
        finally:
            os._exit(0 if refused else 1)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1])


def test_a_process_that_is_gone_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        procfs.read_stat(Machine(proc=str(tmp_path)), 42)


ROLLUP = b"""5581d0c9d000-7ffd6c1b5000 ---p 00000000 00:00 0                          [rollup]
Rss:                8000 kB
Pss:                5000 kB
Pss_Anon:           4000 kB
Pss_File:           1000 kB
Shared_Clean:       1500 kB
Private_Clean:       500 kB
Private_Dirty:      4000 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
"""


def test_uss_is_all_that_is_private() -> None:
    assert SmapsRollup(pss=5000 * 1024, uss=4500 * 1024) == procfs.parse_smaps_rollup(ROLLUP)


def test_shares_of_shared_memory_and_huge_pages_are_distinguished() -> None:
    more = ROLLUP.replace(b"Private_Hugetlb:       0", b"Private_Hugetlb:    2048")
    more += b"Pss_Shmem:           700 kB\nShared_Hugetlb:     4096 kB\n"
    rollup = procfs.parse_smaps_rollup(more)
    assert (700 * 1024, 2048 * 1024, 4096 * 1024) == (rollup.shmem, rollup.private_hugetlb, rollup.shared_hugetlb)


def test_a_process_that_ends_is_known_by_its_flags(tmp_path: Path) -> None:
    for pid, state, flags in ((7, "R", 4194304), (8, "R", 4194308), (9, "Z", 4194304)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) {state} 1 7 7 0 -1 {flags} " + "0 " * 20)
    machine = Machine(proc=str(tmp_path))
    assert [False, True, True, True] == [procfs.is_ending(machine, pid) for pid in (7, 8, 9, 10)]


@pytest.mark.parametrize("content", [b"", b"Rss: 1 kB\n", b"Pss: much kB\n"])
def test_a_rollup_without_pss_is_quoted_and_never_zero(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"no Pss|no number") as refused:
        procfs.parse_smaps_rollup(content)
    assert repr(content.rstrip(b"\n")).strip("b'") in str(refused.value)


def test_an_empty_rollup_is_a_process_that_ended(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "smaps_rollup").write_bytes(b"")
    with pytest.raises(ProcessLookupError):
        procfs.read_smaps_rollup(Machine(proc=str(tmp_path)), 42)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0::/user.slice/a:b\n", {"": "/user.slice/a:b"}),
        ("4:cpu,cpuacct:/x\n3:name=systemd:/\n0::/\n", {"cpu": "/x", "cpuacct": "/x", "name=systemd": "/", "": "/"}),
        ("0::/form\x0cfeed\u2028name\n", {"": "/form\x0cfeed\u2028name"}),
        ("", {}),
    ],
)
def test_the_cgroups_of_a_process_are_indexed_by_controller(content: str, expected: dict[str, str]) -> None:
    assert expected == procfs.parse_cgroup(content)


def test_a_malformed_cgroup_line_is_quoted() -> None:
    with pytest.raises(ValueError, match="'nonsense'"):
        procfs.parse_cgroup("0::/\nnonsense\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"python\0train.py\0--lr\0001e-3\0", "python train.py --lr 1e-3"),
        (b"", "[kworker]"),
        (b"\0\0", "[kworker]"),
        (b"sh\0-c\0echo a\necho\tb\0", "sh -c echo a\necho\tb"),
        (b"cat\0caf\xe9.txt\0", "cat caf�e9.txt"),
        ("cat\0café.txt\0".encode(), "cat café.txt"),
        (b"x\0\x1b[2J\0", "x \x1b[2J"),
        (b"postgres: writer", "postgres: writer"),
    ],
)
def test_a_command_line_is_its_words_as_they_are(content: bytes, expected: str) -> None:
    assert expected == procfs.parse_cmdline(content, b"kworker")


def test_a_long_command_line_is_cut_and_says_so() -> None:
    text = procfs.parse_cmdline(b"x" * 5000, b"x")
    assert (300, "x" * 299 + "…") == (len(text), text)


def test_the_newest_pid_is_the_last_word_of_loadavg(tmp_path: Path) -> None:
    (tmp_path / "loadavg").write_text("0.20 0.18 0.12 1/80 11206\n")
    assert 11206 == procfs.last_pid(Machine(proc=str(tmp_path)))


@needs_proc
def test_threads_are_those_the_kernel_lists() -> None:
    assert os.getpid() in procfs.thread_ids(THIS_MACHINE, os.getpid())


def test_parentage_is_parsed_from_a_stat_line_whatever_the_name() -> None:
    line = b"7 (a) R 1 (b c) S 5 7 6 0 -1 4194308 1 2 3 4 5 6 7 8 20 0 1 0 99 0 0"
    parentage = procfs.parse_parentage(line)
    assert ("S", 5, 6, 99, True, True) == (
        parentage.state,
        parentage.ppid,
        parentage.session,
        parentage.start,
        parentage.alive,
        parentage.ending,
    )
    assert not procfs.read_parentage(THIS_MACHINE, os.getpid()).ending
    with pytest.raises(ValueError, match="not a stat line"):
        procfs.parse_parentage(b"7 (a) S")


def test_a_schedstat_file_has_how_often_a_thread_got_a_cpu() -> None:
    assert 42 == procfs.parse_schedstat(b"123456789 98765 42\n")


@pytest.mark.parametrize("content", [b"", b"1 2\n", b"1 2 many\n"])
def test_a_malformed_schedstat_file_is_quoted(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a schedstat file") as refused:
        procfs.parse_schedstat(content)
    assert repr(content) in str(refused.value)


@needs_proc
def test_a_thread_gets_a_cpu_again_whenever_it_slept() -> None:
    before = procfs.read_schedstat(THIS_MACHINE, os.getpid(), os.getpid())
    for _ in range(10):
        time.sleep(0.001)
    assert procfs.read_schedstat(THIS_MACHINE, os.getpid(), os.getpid()) >= before + 10
