from __future__ import annotations

import pytest

from jobmeter.kernel.diskstats import DiskBytes, parse_diskstats
from jobmeter.kernel.pressure import parse_pressure

DISKS = """   8       0 sda 100 0 2000 0 50 0 1000 0 0 0 0 0 0 0 0 0 0
   8       1 sda1 90 0 1900 0 50 0 1000 0 0 0 0 0 0 0 0 0 0
 259       0 nvme0n1 10 0 80 0 5 0 40 0 0 0 0 0 0 0 0 0 0
 259       1 nvme0n1p1 10 0 80 0 5 0 40 0 0 0 0 0 0 0 0 0 0
 253       0 dm-0 10 0 2080 0 5 0 1040 0 0 0 0 0 0 0 0 0 0
   7       0 loop0 10 0 999 0 5 0 999 0 0 0 0 0 0 0 0 0 0
"""


def test_every_byte_of_a_disk_counts_once() -> None:
    assert DiskBytes(2080 * 512, 1040 * 512) == parse_diskstats(DISKS)


def test_a_line_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="not a line of /proc/diskstats: '8 0 sda x'"):
        parse_diskstats("8 0 sda x\n")


def test_pressure_is_the_time_in_which_some_task_waited() -> None:
    content = "some avg10=0.00 avg60=0.10 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    assert 2.5 == parse_pressure(content)


@pytest.mark.parametrize("content", ["", "full avg10=0.00 total=1\n", "some total=x\n"])
def test_a_file_without_it_is_no_pressure(content: str) -> None:
    with pytest.raises(ValueError, match="not a file of /proc/pressure"):
        parse_pressure(content)
