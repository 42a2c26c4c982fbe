from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from jobmeter.kernel import shmem
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from tests.parts import missing
from tests.small_disk import small_disk
from tests.sysfs import write_files

SHM = """\
       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap
         0          3   600             209715200   100   100      0 65534 65534 65534 65534 1763294888 1763294888 1763294887             209715200                     0
         0          4   600                  4096   100   100      1     0     0     0     0 1763294888 1763294888 1763294887                  4096                     0
         0          5   600                  8192   200   200      0     0     0     0     0 1763294888 1763294888 1763294887                  8192                     0
"""  # noqa: E501 - as the kernel writes it


@pytest.mark.parametrize(
    ("creators", "expected"), [(set(), 0), ({100}, 209715200), ({100, 200}, 209723392), ({300}, 0)]
)
def test_segments_count_that_the_job_made_and_nobody_has_attached(creators: set[int], expected: int) -> None:
    assert expected == shmem.parse_sysvipc_shm(SHM, creators)


def test_a_malformed_line_is_quoted() -> None:
    with pytest.raises(ValueError, match="0 3 odd"):
        shmem.parse_sysvipc_shm("key\n0 3 odd\n", set())


def test_tmpfs_is_known_by_its_device() -> None:
    mounts = (
        "22 27 0:21 / /proc rw - proc proc rw\n31 23 0:28 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw\n"
        "32 23 0:39 / /dev/hugepages rw - hugetlbfs none rw\n33 23 8:1 /tmpfs /a rw - ext4 /dev/sda rw\n"
    )
    assert {os.makedev(0, 28), os.makedev(0, 39)} == shmem.tmpfs_devices(mounts)


def test_a_memfd_counts_once_however_often_it_is_open_or_mapped() -> None:
    me = [os.getpid()]
    before = shmem.open_memory_files(THIS_MACHINE, me).shmem
    first = os.memfd_create("test")
    os.write(first, b"x" * (3 << 20))
    second = os.dup(first)
    with mmap.mmap(first, 1 << 20):
        assert shmem.open_memory_files(THIS_MACHINE, [*me, *me]).shmem - before == 3 << 20
    os.close(first)
    os.close(second)
    assert shmem.open_memory_files(THIS_MACHINE, me).shmem == before


def test_processes_that_are_gone_have_no_files() -> None:
    assert shmem.open_memory_files(THIS_MACHINE, [2**22 + 1]) == shmem.OpenFiles(0, 0)


def test_a_file_on_tmpfs_is_new_to_its_owner_alone() -> None:
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev not in shmem.tmpfs_devices(
        Path("/proc/self/mountinfo").read_text()
    ):
        missing("no tmpfs at /dev/shm")
    folder = tempfile.mkdtemp(dir="/dev/shm")
    try:
        Path(folder, "file").write_bytes(b"x" * 4096)
        nobody = os.getuid() + 1_000_000
        ages = [shmem.has_new_file(THIS_MACHINE, os.getuid(), time.time() + late) for late in (-10, 10)]
        assert ([True, False], False) == (ages, shmem.has_new_file(THIS_MACHINE, nobody, time.time() - 10))
    finally:
        shutil.rmtree(folder)


def with_only(mounted: Path, folder: Path) -> Machine:
    """A machine on which this is the only file system, as the kernel lists it."""
    name = str(mounted).replace(" ", "\\040")
    (line,) = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if line.split()[4] == name]
    write_files(folder / "proc", {"self/mountinfo": line})
    return Machine(proc=str(folder / "proc"))


def test_a_file_on_a_tmpfs_whose_path_has_a_space_is_found(tmp_path: Path) -> None:
    disk = tmp_path / "a b"
    disk.mkdir()
    with small_disk(disk, "1m"):
        (disk / "file").write_bytes(b"x" * 4096)
        assert shmem.has_new_file(with_only(disk, tmp_path), os.getuid(), time.time() - 10)


def test_a_file_on_another_file_system_that_is_mounted_in_a_tmpfs_is_not_found(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk, "1m"):
        (disk / "other").mkdir()
        with small_disk(disk / "other", "1m") as other:
            (other / "file").write_bytes(b"x" * 4096)
            assert not shmem.has_new_file(with_only(disk, tmp_path), os.getuid(), time.time() - 10)
