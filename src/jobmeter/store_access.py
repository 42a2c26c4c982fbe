"""The permissions of a store: only the user who made it has access, unless it was opened to a group on purpose."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from jobmeter.errors import UsageError
from jobmeter.links import directory_of, open_directory, open_existing
from jobmeter.working_directory import absolute_path

_SHARED = stat.S_ISGID | stat.S_IWGRP


class Access:
    """The permissions of new directories and files in a store."""

    __slots__ = ("directory", "exact", "file")

    def __init__(self, directory: int, file: int, *, exact: bool = True) -> None:
        self.directory = directory
        self.file = file
        self.exact = exact  # set these permissions, whatever the umask is


PRIVATE = Access(0o700, 0o600)


def store_access(store: str) -> Access:
    """The permissions of new directories and files in a store: those of its `journal`. A new store is private."""
    return access_like(f"{store}/journal")


def access_like(directory: str) -> Access:
    """The permissions of what is created in this directory of a store: those of the directory itself."""
    try:
        mode = stat.S_IMODE(os.stat(directory).st_mode)
    except OSError:
        return PRIVATE
    if mode & _SHARED == _SHARED:
        return Access(mode, 0o660 | mode & 0o004)
    if mode & 0o077 == 0:
        return PRIVATE
    return Access(mode & 0o777, mode & 0o666, exact=False)  # made by a version whose stores were not private


def make_store_directory(store: str, *names: str) -> Access:
    """Create `store/name/…` if it is missing, and return the permissions used. Raises OSError if that fails."""
    access = store_access(store)
    if os.path.isdir("/".join((store, *names))):
        return access
    _make_parents(absolute_path(store))
    path = store
    for name in ("", *names):
        path = f"{path}/{name}" if name else path
        try:
            make_directory(path, access)
        except FileExistsError:
            if not os.path.isdir(path):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    return access


def _make_parents(path: str) -> None:
    """Create the missing parents of `path`, as `os.makedirs` does. Links are followed only as `directory_of` does."""
    missing: list[str] = []
    parent = os.path.dirname(path)
    while parent and not os.path.isdir(parent):
        missing.append(parent)
        parent = os.path.dirname(parent)
    for directory in reversed(missing):
        with directory_of(directory) as place, contextlib.suppress(FileExistsError):
            os.mkdir(os.path.basename(directory), dir_fd=place)


def make_directory(path: str, access: Access) -> None:
    """Create a directory of a store. Raises FileExistsError if the name exists."""
    name = os.path.basename(path)
    with directory_of(path) as place:
        try:
            os.mkdir(name, access.directory & 0o777, dir_fd=place)
        except OSError as error:
            error.filename = path
            raise
        if access.exact:
            made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            try:
                os.fchmod(made, access.directory)
            finally:
                os.close(made)


def create(path: str, access: Access, flags: int = os.O_WRONLY) -> int:
    """Create a file of a store, which must not exist, and return its descriptor."""
    with directory_of(path) as directory:
        name = os.path.basename(path)
        flags |= os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, access.file, dir_fd=directory)
        except OSError as error:
            error.filename = path
            raise
    if access.exact:
        os.fchmod(descriptor, access.file)
    return descriptor


def open_or_create(path: str, access: Access, flags: int) -> int:
    """Open a file of a store, and create it if it is missing. Raises Refused as `open_existing` does."""
    try:
        return create(path, access, flags & ~os.O_TRUNC)
    except FileExistsError:
        return open_existing(path, flags)


def may_keep_index(store: str) -> bool:
    """Whether this user may use an index file in the store: the store is theirs, or it was opened to a group.

    An index that another user put there could contain anything, and SQLite trusts it. So for a store of another user,
    root uses an index in memory.
    """
    try:
        info = os.stat(store)
    except OSError:
        return False
    if info.st_uid == os.geteuid():
        return True
    return info.st_mode & _SHARED == _SHARED and os.geteuid() != 0


def share_store(store: str, group: str) -> None:
    """Share a store with the members of a group: create it, or open all of an existing store to them.

    Raises UsageError if that is not possible.
    """
    gid = _group_id(group)
    try:
        make_store_directory(store, "journal")
        if not _is_shared(f"{store}/journal", gid) or not _is_shared(store, gid):
            _share_tree(store, gid)
    except PermissionError as error:
        raise UsageError(
            f"--share-group: {error.filename}: only its owner, as a member of {group}, can open it to that group"
        ) from None
    except OSError as error:
        raise UsageError(f"--share-group: {error.filename}: {error.strerror}") from None


def is_shared_with(store: str, group: str) -> bool:
    return _is_shared(f"{store}/journal", _group_id(group))


def sharing_group(store: str) -> str | None:
    """The group that the store was opened to; None if it was not opened to a group."""
    import grp

    try:
        info = os.stat(f"{store}/journal")
        return grp.getgrgid(info.st_gid).gr_name if info.st_mode & _SHARED == _SHARED else None
    except KeyError:
        return str(info.st_gid)
    except OSError:
        return None  # there is no store yet


def others_can_read(store: str) -> bool:
    try:
        return bool(os.stat(store).st_mode & 0o011 and os.stat(f"{store}/journal").st_mode & 0o055)
    except OSError:
        return False


def _group_id(group: str) -> int:
    import grp

    return grp.getgrnam(group).gr_gid


def _is_shared(path: str, gid: int) -> bool:
    try:
        info = os.stat(path)
    except OSError:
        return False
    return info.st_gid == gid and info.st_mode & _SHARED == _SHARED


def _share_tree(path: str, gid: int) -> None:
    directory = open_directory(path)
    try:
        if os.fstat(directory).st_uid != os.geteuid():
            raise PermissionError(0, "", path)
        for name in os.listdir(directory):
            info = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                _share_tree(f"{path}/{name}", gid)
            elif stat.S_ISREG(info.st_mode):
                _share_file(directory, name, gid)
        # Last: until then, no member of the group can enter the directory.
        os.fchown(directory, -1, gid)
        os.fchmod(directory, 0o2770)
    except PermissionError as error:
        raise PermissionError(0, error.strerror, path) from None
    finally:
        os.close(directory)


def _share_file(directory: int, name: str, gid: int) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        info = os.fstat(descriptor)
        if stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and info.st_nlink == 1:
            os.fchown(descriptor, -1, gid)
            os.fchmod(descriptor, 0o660)
    finally:
        os.close(descriptor)
