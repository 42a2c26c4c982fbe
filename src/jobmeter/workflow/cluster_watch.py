"""Watches the cluster that a workflow runs on: the monitor is a child process, `jobmeter cluster`.

It ends when its stdin is closed: when the workflow ends, and also when the runner is killed. It is a separate process
because the engine may be connected to the cluster in this one, and the monitor must not disturb that connection.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobmeter.cluster import SOURCES
from jobmeter.errors import LaunchError, UsageError

if TYPE_CHECKING:
    from jobmeter.record.cluster_types import ClusterReport

_STARTED = "echo; exec cat"
"""The monitor runs as long as this command, which prints a line after the first sample and ends with its stdin."""


def check_watchable(engine: str) -> None:
    """Raise UsageError if the engine has no cluster to watch."""
    if engine not in SOURCES:
        raise UsageError(f"--monitor: engine {engine} has no cluster that can be watched. With: {', '.join(SOURCES)}")


class ClusterWatch:
    """A monitor process that runs while the workflow runs."""

    def __init__(self, engine: str, options: Mapping[str, str], store: str, folder: str) -> None:
        """Start the monitor, and return once it watches the cluster. The report goes to `folder`.

        Raises LaunchError if the cluster cannot be watched.
        """
        self.page = f"{folder}/cluster.html"
        self._report = f"{folder}/cluster.json"
        address = ["--address", options["address"]] if "address" in options else []
        words = ["--engine", engine, *address, "--store", store, "--report", self._report, "--html", self.page]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jobmeter", "cluster", "--quiet", *words, "--", "sh", "-c", _STARTED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C must reach the runner alone: it ends the jobs while the monitor still watches them.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            _, errors = self._process.communicate()
            reason = errors.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("jobmeter: ")
            raise LaunchError(f"--monitor: {reason or 'the monitor ended'}")

    def stop(self) -> ClusterReport | None:
        """End the monitor and return its report; None if it left none."""
        self._process.communicate()
        try:
            with open(self._report, encoding="utf-8") as file:
                report: ClusterReport = json.load(file)
        except (OSError, ValueError):
            return None
        return report


@contextlib.contextmanager
def watching(watch: ClusterWatch | None) -> Iterator[None]:
    """End the monitor if the workflow ends with an exception; otherwise the caller ends it."""
    try:
        yield
    except BaseException:
        if watch is not None:
            watch.stop()
        raise
