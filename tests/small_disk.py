"""File systems so small that a test can fill them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts import missing, need_root


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """`folder` as a file system of this size, such as `4m`."""
    need_root("to mount a small file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        missing("may not mount a small file system here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path, room: int = 0) -> None:
    """Leave not a byte, or only as many as `room`."""
    with pytest.raises(OSError, match="No space left"), open(disk / "ballast", "wb", buffering=0) as file:  # noqa: PT012
        while True:
            file.write(bytes(4096))
    assert os.statvfs(disk).f_bavail == 0
    if room:
        os.truncate(disk / "ballast", os.path.getsize(disk / "ballast") - room)


def empty(disk: Path) -> None:
    """Remove what filled it."""
    (disk / "ballast").unlink()
