from __future__ import annotations

import os

import pytest

from jobmeter.kernel.mountinfo import Mount, parse_mounts

LINE = "31 23 0:28 /part {path} rw,nosuid shared:4 master:2 - tmpfs a\\040source rw,size=4k\n"
OTHER = "33 23 8:1 /tmpfs /a rw - ext4 tmpfs rw\n"


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("/dev/shm", "/dev/shm"),
        ("/a\\040b\\011c\\012d", "/a b\tc\nd"),
        ("/\\043\\134", "/#\\"),
        ("/\\134040", "/\\040"),  # a backslash before digits
        ("/a\x85b", "/a\x85b"),  # for some the end of a line
    ],
)
def test_a_mount_point_of_any_name_is_found_among_all_mounts(written: str, path: str) -> None:
    content = OTHER + LINE.format(path=written) + OTHER
    assert [Mount(os.makedev(0, 28), "/part", path, "tmpfs", "rw,size=4k")] == parse_mounts(content, "tmpfs")


def test_without_mounts_there_are_none() -> None:
    assert [] == parse_mounts("", "tmpfs")
