"""Reads a Ray cluster through a separate process.

Ray ends a process whose cluster is lost, or keeps it waiting for a minute. What was sampled must be reported all the
same, and a workflow that is watched goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from jobmeter.cluster.contract import ClusterReading, ClusterSource
from jobmeter.engines.ray.connection import open_socket, wanted_address
from jobmeter.engines.ray.driver_process import DriverProcess
from jobmeter.errors import JobmeterError, LaunchError

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ray_reader.py")


def ray_source(address: str | None, store: str, warn: Callable[[str], None]) -> ClusterSource:
    """Reads through the connection that this program has to Ray, otherwise through a separate process."""
    ray: Any = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        from jobmeter.cluster.ray_source import RaySource

        return RaySource(address, store, warn)
    return RayProcess(address)


class RayProcess:
    """The side of the monitor: sends requests to `ray_reader`, and returns what it answers."""

    def __init__(self, address: str | None) -> None:
        self.notes: list[str] = []
        self._wanted = address
        self._address: str | None = None  # None: not connected yet
        self._process: DriverProcess
        self._known_notes = 0  # how many notes of the process are in `notes`
        self._cpu_seconds = 0.0
        self._gone: LaunchError | None = None

    def open(self) -> str:
        wanted = wanted_address(self._wanted)
        self._process = DriverProcess(_PROGRAM)
        try:
            self._address = address = str(self._request("open", wanted))
        except BaseException:
            self._process.kill()  # it may be waiting for the cluster
            self._process.close()
            raise
        return address

    def read(self) -> ClusterReading:
        reading: ClusterReading = self._request("read")
        return reading

    def cpu_seconds(self) -> float:
        return self._cpu_seconds

    def close(self) -> None:
        if self._gone is not None:
            self._process.kill()
        self._process.close()

    def _request(self, kind: str, *arguments: Any) -> Any:
        if self._gone is not None:
            raise self._gone
        try:
            value, notes, self._cpu_seconds = self._process.request(kind, *arguments, meanwhile=self._check_head)
        except LaunchError as error:
            state = "cannot be used" if self._address is None else f"at {self._address} is gone"
            self._gone = LaunchError(f"the Ray cluster {state}: {error}")
            raise self._gone from None
        self.notes += notes[self._known_notes :]
        self._known_notes = len(notes)
        if isinstance(value, JobmeterError):
            raise value
        return value

    def _check_head(self) -> None:
        """Raise LaunchError if the head does not listen any more: Ray would go on waiting for it."""
        if self._address is None:
            return
        try:
            open_socket(self._address).close()
        except OSError as error:
            raise LaunchError(error.strerror or str(error)) from None
