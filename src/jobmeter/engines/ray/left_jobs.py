"""Notes the running jobs of a node in files on that node, so that a later runner finds jobs whose runner was killed.

The guard of a worker ends its jobs when the worker is killed; the files are needed if the guard was killed, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Collection
from typing import Any

from jobmeter.engines.contract import Token
from jobmeter.engines.local import left_job
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import Identity
from jobmeter.launch.leftover_jobs import end_jobs, identity_of


def _folder() -> str:
    return f"{tempfile.gettempdir()}/jobmeter-ray-{os.getuid()}"


class NotedJob:
    """The file of the job that this worker runs. There is one job at a time."""

    def __init__(self, key: str) -> None:
        self._path = f"{_folder()}/{key}.{os.getpid()}.json"

    def note(self, token: Token) -> None:
        """Write the token of the job. Call it before the job can run. A failure, as on a full disk, is ignored."""
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(_folder(), 0o700)
            with open(self._path, "w", encoding="utf-8") as file:
                json.dump(token, file)

    def forget(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def end_left(keys: Collection[str]) -> int:
    """End what is left here of the jobs of engines with these keys; returns how many still ran."""
    tokens = []
    for name in _names():
        if name.partition(".")[0] in keys:
            tokens.append(_read(name))
            _remove(name)
    if any(token.get("container") for token in tokens):
        from jobmeter.launch.container.leftovers import clean

        clean(THIS_MACHINE)
    return end_jobs(THIS_MACHINE, [left_job(token) for token in tokens if "shepherd" in token])


def forget_ended() -> None:
    """Remove the files of workers that were killed, and whose jobs have ended."""
    for name in _names():
        worker = name.split(".")[1]
        if not worker.isdigit() or identity_of(THIS_MACHINE, int(worker)) is None:
            token = _read(name)
            identities = [Identity(*token[each]) for each in ("shepherd", "main") if each in token]
            if not any(identity_of(THIS_MACHINE, each.pid) == each for each in identities) and "container" not in token:
                _remove(name)


def _names() -> list[str]:
    try:
        names = os.listdir(_folder()) if os.stat(_folder()).st_uid == os.getuid() else []
    except OSError:
        return []
    return [name for name in names if name.endswith(".json")]


def _read(name: str) -> dict[str, Any]:
    try:
        with open(f"{_folder()}/{name}", encoding="utf-8") as file:
            token: dict[str, Any] = json.load(file)
            return token
    except (OSError, ValueError):
        return {}


def _remove(name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(f"{_folder()}/{name}")
