"""Paths and the working directory, which may have been removed while a shell was in it."""

from __future__ import annotations

import os


def present_directory() -> str:
    """The working directory; empty if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def absolute_path(path: str) -> str:
    """The absolute path. If the working directory was removed, the path stays relative: opening it reports why."""
    return os.path.normpath(os.path.join(present_directory(), path))


def near_path(path: str) -> str:
    """The path relative to the working directory if it is below that; otherwise the path as it is."""
    directory = present_directory()
    near = os.path.relpath(path, directory) if directory else ".."
    return path if near.split("/")[0] == ".." else near
