"""Replaces a file in one step: at every moment it has either all of its old content or all of its new content."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any

from jobmeter.links import directory_of, output_path
from jobmeter.store_access import Access

_LONGEST = 100  # bytes of the file's name in the name of its temporary file: names have at most 255 bytes


@contextlib.contextmanager
def replacing(
    path: str, *, binary: bool = False, access: Access | None = None, directory: int | None = None
) -> Iterator[IO[Any]]:
    """Open a new file that replaces `path` when the block ends, and is removed if the block raises.

    The new file gets the permissions and the owner of the old one, as far as this user may set them. If `path` is a
    symbolic link that this user or root made, the file that it points to is replaced. Raises OSError if the file
    cannot be written, or if another user made the link.

    `access` is for a file of a store, where no link is followed; `directory` is then its directory, if it is open.
    """
    target = path if access is not None else output_path(path)
    opened = contextlib.nullcontext(directory) if directory is not None else directory_of(target)
    with opened as place, _replacing_in(place, os.path.basename(target), access, binary=binary) as file:
        yield file


@contextlib.contextmanager
def _replacing_in(directory: int, name: str, access: Access | None, *, binary: bool) -> Iterator[IO[Any]]:
    # In the same directory: a file cannot be renamed across file systems, and copying it is not one step.
    beginning = os.fsencode(name)[:_LONGEST].decode("utf-8", "ignore")  # without a letter that was cut
    temporary = f".{beginning}.{os.urandom(6).hex()}"
    try:
        old = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    # A new file gets the permissions that the umask allows, as with open(). A file that replaces another one, or is in
    # a store, gets its permissions when its content is complete.
    mode = 0o666 if old is None and access is None else 0o600
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode, dir_fd=directory)
    try:
        with open(descriptor, "wb") if binary else open(descriptor, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            if old is not None:
                _take_over(descriptor, old)
            elif access is not None:
                os.fchmod(descriptor, access.file)
            os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise


def _take_over(descriptor: int, old: os.stat_result) -> None:
    """Give a new file the owner and the permissions of the old one, but not its setuid bit: the content is ours."""
    mode, new = old.st_mode & 0o777, os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except OSError:
            try:
                os.fchown(descriptor, -1, old.st_gid)
            except OSError:
                mode &= ~0o070  # our group must not get the permissions of the old group
    os.fchmod(descriptor, mode)
