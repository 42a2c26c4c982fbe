"""Watches the cluster that a workflow runs on, by `jobmeter cluster` in a process of its own.

It ends when its stdin does: with the workflow, and also when the runner is killed. An engine may be connected to its
cluster in this process in a way of its own, which the monitor must not disturb.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobmeter.cluster import ENGINES
from jobmeter.errors import LaunchError, UsageError

if TYPE_CHECKING:
    from jobmeter.record.cluster_types import ClusterReport

_STARTED = "echo; exec cat"
"""The command that says how long: it prints a line when the first sample was taken, and ends with its stdin."""


def check_watchable(engine: str) -> None:
    """UsageError for an engine that has no cluster to watch."""
    if engine not in ENGINES:
        raise UsageError(f"--monitor: engine {engine} has no cluster that can be watched. With: {', '.join(ENGINES)}")


class ClusterWatch:
    """A monitor that runs beside the workflow."""

    def __init__(self, engine: str, options: Mapping[str, str], store: str, folder: str) -> None:
        """Returns once the cluster is watched. LaunchError when it cannot be. The report goes to `folder`."""
        self.page = f"{folder}/cluster.html"
        self._report = f"{folder}/cluster.json"
        address = ["--address", options["address"]] if "address" in options else []
        words = ["--engine", engine, *address, "--store", store, "--report", self._report, "--html", self.page]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jobmeter", "cluster", "--quiet", *words, "--", "sh", "-c", _STARTED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is for the runner, which lets the jobs end while they are still watched.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            _, said = self._process.communicate()
            reason = said.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("jobmeter: ")
            raise LaunchError(f"--monitor: {reason or 'the monitor ended'}")

    def stop(self) -> ClusterReport | None:
        """End it; its report, or None when it left none."""
        self._process.communicate()
        try:
            with open(self._report, encoding="utf-8") as file:
                report: ClusterReport = json.load(file)
        except (OSError, ValueError):
            return None
        return report


@contextlib.contextmanager
def watching(watch: ClusterWatch | None) -> Iterator[None]:
    """End the monitor whatever happens to the workflow."""
    try:
        yield
    except BaseException:
        if watch is not None:
            watch.stop()
        raise
