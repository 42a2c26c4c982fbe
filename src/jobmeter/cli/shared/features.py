"""What is known of a run before it starts: the size of its inputs, numbers that it is labelled with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from jobmeter.errors import UsageError


def input_bytes(paths: Sequence[str]) -> float:
    """The size of all files; of a directory, that of the files in it. UsageError for what cannot be read."""
    return float(sum(map(_size, paths)))


def _size(path: str) -> int:
    try:
        if not os.path.isdir(path):
            return os.stat(path).st_size
        return sum(os.stat(os.path.join(folder, name)).st_size for folder, _, files in os.walk(path) for name in files)
    except OSError as error:
        raise UsageError(f"--input: {path}: {error.strerror}") from None


def named_features(labels: Mapping[str, str]) -> dict[str, float]:
    """The labels that are numbers."""
    from jobmeter.analyse.size.observation import features_of

    return features_of({"labels": labels})
