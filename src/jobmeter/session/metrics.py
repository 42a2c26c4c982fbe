"""The metrics that a job reports, such as the loss of a model. A study and its leaderboard are made from them.

A job appends to a log (`jobmeter metric`), or leaves a file `metrics.json`. The job writes both, so their content is
not trusted: a value that is not a number is left out.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator

from jobmeter.byte_text import to_text
from jobmeter.light_typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jobmeter.record.types import MetricRecord

VARIABLE = "JOBMETER_METRICS"
"""The environment variable of a job that has the path of its log."""
FILE = "metrics.json"
_LARGEST = 4 << 20
"""The most bytes that are read from a file."""
_MOST_METRICS, _MOST_POINTS = 100, 500
_LONGEST_NAME = 200


class MetricFiles(NamedTuple):
    """Where a job reports its metrics; None for a way that it does not use."""

    log: str | None = None
    file: str | None = None

    def state(self) -> tuple[int, ...] | None:
        """Inode, modification time and size of the file, which change when it is written; None if there is no file."""
        try:
            status = os.stat(self.file or "")
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


def append_metric(path: str, name: str, value: float, moment: float) -> None:
    """Add a value to the log of a job, with one write(2): several processes of a job may append at once."""
    line = json.dumps([to_text(name), value, round(moment, 3)]) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read_metrics(
    files: MetricFiles, began: float, ended: float, state_before: tuple[int, ...] | None = None
) -> dict[str, MetricRecord]:
    """The metrics of a job that ran from `began` to `ended`, by name. If a metric has many points, some are left out.

    The file is ignored if its state is `state_before`, that of before the job: see `MetricFiles.state`.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    written = files.state() != state_before
    for name, value, moment in (*(_from_file(files.file, ended) if written else ()), *_from_log(files.log)):
        if name in points or len(points) < _MOST_METRICS:
            points.setdefault(name, []).append((max(moment - began, 0.0), value))
    return {name: _metric(values) for name, values in points.items()}


def _metric(points: list[tuple[float, float]]) -> MetricRecord:
    points = sorted(points, key=lambda point: point[0])
    if len(points) > _MOST_POINTS:
        step = (len(points) - 1) / (_MOST_POINTS - 1)
        points = [points[round(place * step)] for place in range(_MOST_POINTS)]
    metric: MetricRecord = {"value": points[-1][1]}
    if len(points) > 1:
        metric["seconds"] = [round(seconds, 3) for seconds, _ in points]
        metric["values"] = [value for _, value in points]
    return metric


def _from_log(path: str | None) -> Iterator[tuple[str, float, float]]:
    for line in _read(path, both_ends=True).splitlines():
        entry = _parse(line)
        if isinstance(entry, list) and len(entry) == 3 and _is_number(entry[2]):
            yield from _checked([(entry[0], entry[1])], entry[2])


def _from_file(path: str | None, ended: float) -> Iterator[tuple[str, float, float]]:
    entry = _parse(_read(path))
    if isinstance(entry, dict):
        yield from _checked(entry.items(), ended)


def _checked(entries: Iterable[tuple[Any, Any]], moment: float) -> Iterator[tuple[str, float, float]]:
    for name, value in entries:
        if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and _is_number(value):
            yield to_text(name), value, moment


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e30  # so is not NaN


def _read(path: str | None, *, both_ends: bool = False) -> str:
    """The text of a file. Of one that is too large: its beginning, or with `both_ends` half of that from each end."""
    if path is None:
        return ""
    try:
        # The job may have put anything there: opening a FIFO must not block, and /dev/zero has no end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return ""
        with open(descriptor, "rb", closefd=False) as file:
            if not both_ends or status.st_size <= _LARGEST:
                return file.read(_LARGEST).decode(errors="replace")
            beginning = file.read(_LARGEST // 2)
            file.seek(-(_LARGEST // 2), os.SEEK_END)
            # Two lines are cut, and so no JSON any more.
            return (beginning + b"\n" + file.read(_LARGEST // 2)).decode(errors="replace")
    finally:
        os.close(descriptor)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
