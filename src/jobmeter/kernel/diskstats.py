"""/proc/diskstats: what was read from disks and written to them (Documentation/admin-guide/iostats.rst)."""

from __future__ import annotations

import re

from jobmeter.kernel.machine import Machine, read_text
from jobmeter.light_typing import NamedTuple

_SECTOR = 512
"""Bytes: the unit of this file, whatever the sector size of the disk."""
_WHOLE_DISK = r"(?:[shv]d[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+|dasd[a-z]+|pmem\d+)"
"""Names of whole disks. Partitions, and devices made of disks (dm-0, md0, loop0), are left out: a byte counts once."""


class DiskBytes(NamedTuple):
    """Bytes since boot, summed over all disks."""

    read: int
    written: int


def parse_diskstats(content: str) -> DiskBytes:
    read = written = 0
    for line in content.splitlines():
        fields = line.split()
        try:
            if re.fullmatch(_WHOLE_DISK, fields[2]):
                read, written = read + int(fields[5]), written + int(fields[9])
        except (IndexError, ValueError):
            raise ValueError(f"not a line of /proc/diskstats: {line!r}") from None
    return DiskBytes(read * _SECTOR, written * _SECTOR)


def read_diskstats(machine: Machine) -> DiskBytes:
    return parse_diskstats(read_text(f"{machine.proc}/diskstats"))
