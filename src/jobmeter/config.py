"""Reads configuration files that no other user can have written. Imported only if a configuration file exists."""

from __future__ import annotations

import os
import stat

from jobmeter.errors import UsageError
from jobmeter.light_typing import Any
from jobmeter.links import Refused, check_link, user_name

_LARGEST = 1 << 20
"""Bytes. A configuration file has a few lines; a larger file is something else."""


class NotTrusted(UsageError):
    """A file that another user wrote, or could have written."""


def read_config(path: str) -> dict[str, Any]:
    """Read a file. Raises NotTrusted if another user could have written it, UsageError if it cannot be read."""
    content = _read(path)
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef,import-not-found,unused-ignore]

    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise UsageError(f"{path}: it is not UTF-8") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: its values are nested too deeply") from None


def _read(path: str) -> bytes:
    try:
        check_link(path)
        # Without O_NONBLOCK, opening a FIFO that has no writer would block for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            # The open file is checked, not the path, which may lead to another file a moment later.
            _check(path, os.fstat(descriptor))
            content = b""
            while len(content) <= _LARGEST and (more := os.read(descriptor, _LARGEST + 1 - len(content))):
                content += more
        finally:
            os.close(descriptor)
    except Refused as error:
        raise NotTrusted(f"{path} is ignored: {error.strerror}. Put a file of your own in its place.") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise UsageError(f"{path}: larger than 1 MiB, and so not a configuration file")
    return content


def _check(path: str, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise UsageError(f"{path}: not a regular file")
    if info.st_uid not in (0, os.geteuid()):
        raise NotTrusted(
            f"{path} is ignored: it belongs to {user_name(info.st_uid)}, not to you or root. "
            f"To use it: chown {user_name(os.geteuid())} {path}"
        )
    if info.st_mode & stat.S_IWOTH or (info.st_mode & stat.S_IWGRP and not _is_own_group(info)):
        raise NotTrusted(f"{path} is ignored: other users can write to it. To use it: chmod go-w {path}")
    if info.st_nlink > 1 and _others_write_to(os.path.dirname(path)):
        raise NotTrusted(
            f"{path} is ignored: it is a hard link, in a directory that other users can write to. "
            "To use it, put a copy in its place."
        )


def _is_own_group(info: os.stat_result) -> bool:
    """Whether the file's owner is alone in its group: many systems give each user a group, and a umask of 002."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(info.st_uid), grp.getgrgid(info.st_gid)
    except KeyError:
        return False
    return owner.pw_gid == group.gr_gid and owner.pw_name == group.gr_name and set(group.gr_mem) <= {owner.pw_name}


def _others_write_to(directory: str) -> bool:
    info = os.stat(directory)
    return info.st_uid not in (0, os.geteuid()) or bool(info.st_mode & (stat.S_IWOTH | stat.S_IWGRP))
