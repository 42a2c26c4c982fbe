"""Shared memory that processes can hold without mapping it: memfds, files on tmpfs, SysV segments."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from jobmeter.kernel.machine import PAGE_SIZE, Machine, read_text
from jobmeter.kernel.mountinfo import parse_mounts

_NO_FILES = ("socket:", "pipe:", "anon_inode:")


class OpenFiles(NamedTuple):
    """Bytes."""

    shmem: int
    hugetlb: int


def open_memory_files(machine: Machine, pids: list[int]) -> OpenFiles:
    """Memory of the memfds and the files on tmpfs that any of these processes has open, each file counted once."""
    devices = tmpfs_devices(read_text(f"{machine.proc}/self/mountinfo"))
    shmem: dict[tuple[int, int], int] = {}
    hugetlb: dict[tuple[int, int], int] = {}
    for pid in pids:
        directory = f"{machine.proc}/{pid}/fd"
        try:
            names = os.listdir(directory)
        except OSError:
            continue  # another user's process, or it has ended
        for name in names:
            try:
                path = f"{directory}/{name}"
                link = os.readlink(path)
                if link.startswith(_NO_FILES):
                    continue
                status = os.stat(path)
                if link.startswith("/memfd:") or status.st_dev in devices:
                    # Files of huge pages are on a file system whose block size is that of the pages.
                    sizes = shmem if os.statvfs(path).f_bsize == PAGE_SIZE else hugetlb
                    sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
            except OSError:
                continue  # closed since it was listed
    return OpenFiles(sum(shmem.values()), sum(hugetlb.values()))


def tmpfs_devices(mountinfo: str) -> set[int]:
    """The device numbers of every tmpfs and hugetlbfs in the content of /proc/PID/mountinfo."""
    return {mount.device for mount in parse_mounts(mountinfo, "tmpfs", "hugetlbfs")}


def unattached_segment_bytes(machine: Machine, creators: set[int]) -> int:
    """Resident memory of the SysV segments that one of these pids made and no process has attached."""
    try:
        return parse_sysvipc_shm(read_text(f"{machine.proc}/sysvipc/shm"), creators)
    except OSError:
        return 0


def parse_sysvipc_shm(content: str, creators: set[int]) -> int:
    """The sum of `rss` of the segments that a pid of `creators` made and no process has attached.

    Lines are `key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap`.
    """
    total = 0
    for line in content.split("\n")[1:]:
        fields = line.split()
        try:
            if fields and int(fields[4]) in creators and int(fields[6]) == 0:
                total += int(fields[14])
        except (ValueError, IndexError):
            raise ValueError(f"not a line of /proc/sysvipc/shm: {line!r}") from None
    return total


_MOST_ENTRIES = 2000


def has_new_file(machine: Machine, user: int, since: float) -> bool:
    """Whether this user has a file on a tmpfs that was changed after `since` (seconds since 1970).

    Checks at most `_MOST_ENTRIES` files and directories, of all tmpfs together.
    """
    mounts = parse_mounts(read_text(f"{machine.proc}/self/mountinfo"), "tmpfs")
    waiting = [(mount.path, mount.device) for mount in mounts]
    left = _MOST_ENTRIES
    while waiting and left > 0:
        directory, device = waiting.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue  # not readable by this user, or removed
        for entry in entries[:left]:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if status.st_dev != device:
                continue  # another file system is mounted there
            if stat.S_ISDIR(status.st_mode):
                waiting.append((entry.path, device))
            elif status.st_uid == user and status.st_ctime >= since and status.st_blocks:
                return True
        left -= len(entries)
    return False
