"""Opens files in places that other users can write to: a directory that is open to all, a store of another user.

A link of another user could choose which of our files is read or overwritten. It is not followed, except to a directory
that belongs to the same user.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from jobmeter.working_directory import absolute_path

_MOST_LINKS = 40  # the limit of the kernel
_WALK = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags to open a directory that this user may only pass through; `O_DIRECTORY` also makes an automounter mount it."""


class Refused(OSError):
    """A file or link is not used, because another user may have put it there. The text says what it is."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(0, what, path)


def open_existing(path: str, flags: int) -> int:
    """Open an existing file of a store.

    Raises Refused if it is a symbolic link, a hard link to a file of another user, or not a regular file.
    """
    with directory_of(path) as directory:
        return open_in(directory, os.path.basename(path), flags, path)


def open_in(directory: int, name: str, flags: int, path: str) -> int:
    """Open the file `name` in an open directory, as `open_existing` does; `path` is for messages."""
    truncate = flags & os.O_TRUNC
    try:
        # Without O_NONBLOCK, opening a FIFO could block for ever.
        flags = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=directory)
    except OSError as error:
        if _is_link(name, directory):
            raise Refused(path, "it is a symbolic link, and none is followed in a store") from None
        error.filename = path
        raise
    try:
        _check_opened(descriptor, directory, path)
        if truncate:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_opened(descriptor: int, directory: int, path: str) -> None:
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        raise Refused(path, "it is not a regular file")
    # A user who can write to the directory can link any file into it. Copies by `cp --link` have the same owner.
    if info.st_nlink > 1 and info.st_uid != os.fstat(directory).st_uid:
        raise Refused(path, "it is a hard link to a file of another user")


@contextlib.contextmanager
def directory_of(path: str) -> Iterator[int]:
    """A descriptor of the directory of a file: its path may lead to another directory a moment later.

    The directory cannot be listed with it. Raises Refused as `open_directory` does.
    """
    descriptor = _walk(os.path.dirname(path) or ".")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_directory(path: str) -> int:
    """Open a directory. Symbolic links in its path are followed if this user or root made them.

    A link of another user is followed only to a directory that belongs to the same user, who could have put the
    directory itself there. Raises Refused for other links.
    """
    directory = _walk(path)
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(directory)


def _walk(path: str) -> int:
    """A descriptor of a directory, opened name by name: no name can be replaced between its check and its use."""
    names: list[str | _EndOfLink] = [*reversed(path.split("/"))]
    directory = os.open("/" if path.startswith("/") else ".", _WALK)
    links = 0
    try:
        while names:
            name = names.pop()
            if isinstance(name, _EndOfLink):
                name.check(directory, path)
                continue
            if name in ("", "."):
                continue
            try:
                following = os.open(name, _WALK | os.O_NOFOLLOW, dir_fd=directory)
            except OSError:
                if not _is_link(name, directory):
                    raise
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
                target, owner = _read_link(name, directory)
                if owner not in (0, os.geteuid()):
                    names.append(_EndOfLink(name, owner))
                names += reversed(target.split("/"))
                following = os.open("/", _WALK) if target.startswith("/") else os.dup(directory)
            os.close(directory)
            directory = following
    except OSError as error:
        os.close(directory)
        error.filename = path
        raise
    return directory


class _EndOfLink:
    """Marks in the list of names where the target of another user's link ends."""

    def __init__(self, name: str, owner: int) -> None:
        self._name = name
        self._owner = owner

    def check(self, directory: int, path: str) -> None:
        if os.fstat(directory).st_uid != self._owner:
            made_by = f"of {user_name(self._owner)}, another user, to a directory that is not theirs"
            raise Refused(path, f"{self._name!r} in this path is a symbolic link {made_by}")


def _read_link(name: str, directory: int) -> tuple[str, int]:
    """The target of a symbolic link, and the uid of its owner."""
    if not hasattr(os, "O_PATH"):  # not Linux
        return os.readlink(name, dir_fd=directory), os.stat(name, dir_fd=directory, follow_symlinks=False).st_uid
    link = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        return os.readlink("", dir_fd=link), os.fstat(link).st_uid
    finally:
        os.close(link)


def check_link(path: str) -> None:
    """Raise Refused if `path` is a symbolic link of a user other than this one and root."""
    info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode) and info.st_uid not in (0, os.geteuid()):
        raise Refused(path, f"it is a symbolic link of {user_name(info.st_uid)}, another user")


def _is_link(path: str, directory: int | None = None) -> bool:
    try:
        return stat.S_ISLNK(os.stat(path, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def output_path(path: str) -> str:
    """The path to write to if the user named `path` for output: links that this user or root made are resolved.

    Raises Refused for a link of another user, and for a file that another user put into a directory that all can
    write to.
    """
    target = absolute_path(path)
    for _ in range(_MOST_LINKS):
        if not _is_link(target):
            break
        check_link(target)
        if target.startswith(("/dev/", "/proc/")):
            return target  # a link to an open file of a process, whose text need not be a path
        target = absolute_path(os.path.join(os.path.dirname(target), os.readlink(target)))
    _check_planted(target)
    return target


def _check_planted(path: str) -> None:
    """Refuse what `fs.protected_regular` and `fs.protected_hardlinks` of Linux refuse: many systems leave them off."""
    try:
        info, place = os.lstat(path), os.stat(os.path.dirname(path))
    except OSError:
        return  # a new file, or opening it reports the reason
    if not stat.S_ISREG(info.st_mode) or not place.st_mode & stat.S_IWOTH:
        return
    if place.st_mode & stat.S_ISVTX and info.st_uid not in (os.geteuid(), place.st_uid):
        raise Refused(path, f"it is a file of {user_name(info.st_uid)}, another user, in a directory for everyone")
    if info.st_nlink > 1:
        raise Refused(path, "it is a hard link, in a directory that other users can write to")


def open_output(path: str) -> int:
    """Open a file that the user named for output, created if missing and emptied; see `output_path`."""
    target = output_path(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    if target.startswith(("/dev/", "/proc/")):
        descriptor = os.open(target, flags, 0o666)
    else:
        with directory_of(target) as directory:
            descriptor = os.open(os.path.basename(target) or ".", flags | os.O_NOFOLLOW, 0o666, dir_fd=directory)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.ftruncate(descriptor, 0)
    return descriptor


def user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
