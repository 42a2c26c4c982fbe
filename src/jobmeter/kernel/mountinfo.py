"""The mounted file systems, from /proc/PID/mountinfo."""

from __future__ import annotations

import os

from jobmeter.light_typing import NamedTuple

_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\043", "#"), ("\\134", "\\"))
"""What the kernel writes for characters that would end a field. The backslash is last, as it begins the others."""


class Mount(NamedTuple):
    device: int
    root: str  # the directory of the file system that is mounted
    path: str
    kind: str
    options: str  # of the file system, not of this mount of it


def parse_mounts(content: str, *kinds: str) -> list[Mount]:
    """The mounts of file systems of these kinds."""
    mounts = []
    # Not splitlines(): a mount point may contain characters that it takes for the end of a line.
    for line in content.split("\n"):
        before, _, after = line.partition(" - ")
        kind, _, source_and_options = after.partition(" ")
        if kind in kinds:
            _, _, device, root, path, _ = before.split(" ", 5)
            major, _, minor = device.partition(":")
            number = os.makedev(int(major), int(minor))
            mounts.append(Mount(number, _unescape(root), _unescape(path), kind, source_and_options.partition(" ")[2]))
    return mounts


def _unescape(path: str) -> str:
    if "\\" in path:
        for escape, character in _ESCAPES:
            path = path.replace(escape, character)
    return path
