"""Removes stored samples of clusters that were watched long ago."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from jobmeter.cluster.storage import FOLDER, SCHEMA, SUFFIX
from jobmeter.errors import StoreError
from jobmeter.journal.lines import parse_line, read_lines
from jobmeter.links import open_directory, open_in
from jobmeter.store.index.liveness import writer_lives
from jobmeter.times import parse_moment

_TAIL = 1 << 16
"""Bytes at the end of a file in which its last line is looked for."""


class PrunedSamples(NamedTuple):
    files: int
    bytes: int


def prune_samples(store: str, before: float, *, dry_run: bool = False) -> PrunedSamples:
    """Remove the samples of monitors that began before `before` and write no more; with `dry_run` only count them.

    Other files are left alone. If a file cannot be removed, raises StoreError after it has removed the others.
    """
    path = f"{store}/{FOLDER}"
    try:
        directory = open_directory(path)
    except FileNotFoundError:
        return PrunedSamples(0, 0)  # no cluster was watched
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    files = freed = 0
    failed: list[str] = []
    try:
        for name in sorted(os.listdir(directory)):
            size = _prunable_bytes(directory, name, before) if name.endswith(SUFFIX) else None
            if size is None:
                continue
            try:
                if not dry_run:
                    os.unlink(name, dir_fd=directory)
            except FileNotFoundError:
                continue  # another gc removed it
            except OSError as error:
                failed.append(f"{path}/{name}: {error.strerror}")
                continue
            files, freed = files + 1, freed + size
    finally:
        os.close(directory)
    if failed:
        more = f" ({len(failed) - 1} more files could not be removed)" if len(failed) > 1 else ""
        raise StoreError(failed[0] + more)
    return PrunedSamples(files, freed)


def _prunable_bytes(directory: int, name: str, before: float) -> int | None:
    """The size of a file of samples that may be removed; None for any other file."""
    try:
        descriptor = open_in(directory, name, os.O_RDONLY, name)
    except OSError:
        return None  # a symbolic link, or gone, or not readable
    with open(descriptor, "rb") as file:
        header = parse_line(next(read_lines(file), b""))
        if not isinstance(header, dict) or header.get("schema") != SCHEMA:
            return None
        began = _began(header)
        info = os.fstat(descriptor)
        if began is None or began >= before:
            return None
        return info.st_size if _has_end(file, info.st_size) or not writer_lives(header, info.st_mtime) else None


def _began(header: Mapping[str, Any]) -> float | None:
    try:
        return parse_moment(str(header.get("started"))).timestamp()
    except (ValueError, OverflowError):
        return None


def _has_end(file: IO[bytes], size: int) -> bool:
    """Whether the monitor wrote its last line. Its process may still run after that, and watch another cluster."""
    file.seek(max(size - _TAIL, 0))
    return file.read(_TAIL).rstrip(b"\n").rpartition(b"\n")[2].startswith(b'{"ended"')
