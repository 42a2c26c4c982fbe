"""Features of a run that are known before it starts: the size of its inputs, and its labels that are numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from jobmeter.errors import UsageError


def input_bytes(paths: Sequence[str]) -> float:
    """The total size of the files; of a directory, all files below it. Raises UsageError if a size cannot be read."""
    return float(sum(map(_size, paths)))


def _size(path: str) -> int:
    try:
        if not os.path.isdir(path):
            return os.stat(path).st_size
        folders = os.walk(path, onerror=_raise)
        return sum(os.stat(os.path.join(folder, name)).st_size for folder, _, files in folders for name in files)
    except OSError as error:
        raise UsageError(f"--input: {error.filename or path}: {error.strerror}") from None


def _raise(error: OSError) -> None:
    raise error


def named_features(labels: Mapping[str, str]) -> dict[str, float]:
    """The labels that are numbers."""
    from jobmeter.analyse.size.observation import features_of

    return features_of({"labels": labels})
