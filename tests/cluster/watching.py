"""Watches clusters as people do: `jobmeter cluster` in a process of its own, its samples read while it runs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jobmeter.analyse.cluster.model import History
from jobmeter.cluster.storage import read_samples
from jobmeter.errors import StoreError
from tests.ray_cluster import RayCluster
from tests.records import violations_of_schema
from tests.waiting import LONG, wait_for


class Watched:
    """`jobmeter cluster` that runs; with `stop` it ends, and gives its report."""

    def __init__(self, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.store = tempfile.mkdtemp(prefix="jobmeter-watched-")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jobmeter", "cluster", "--json", "--store", self.store, *options],
            env=dict(environment or os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def history(self) -> History:
        """What it has seen so far."""
        for path in Path(self.store, "cluster").glob("*.jsonl"):
            with contextlib.suppress(StoreError):
                return read_samples(str(path))[1]
        return History()

    def wait_until(self, seen: Callable[[History], bool], what: str) -> None:
        def happened() -> bool:
            assert self._process.poll() is None, self._process.communicate()
            return seen(self.history)

        wait_for(happened, what)

    def wait_for_seconds(self, seconds: float) -> None:
        """Wait until so many seconds were watched."""
        self.wait_until(lambda history: history.seconds >= seconds, f"{seconds} s were watched")

    def stop(self) -> dict[str, Any]:
        """End it as Ctrl-C does; its report, which follows the schema."""
        self._process.send_signal(signal.SIGINT)
        return self.report()

    def report(self, exit_code: int = 0) -> dict[str, Any]:
        """Wait for its end; its report."""
        self.stdout, self.stderr = self._process.communicate(timeout=LONG)
        assert exit_code == self._process.returncode, self.stderr
        report: dict[str, Any] = json.loads(self.stdout)
        assert [] == violations_of_schema("cluster", report)
        return report

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        shutil.rmtree(self.store)


@contextlib.contextmanager
def watched(cluster: RayCluster | None, *options: str) -> Iterator[Watched]:
    """`jobmeter cluster` on this cluster; without one, on this machine."""
    words = ("--interval", "0.5s", "--after", "3s", *options)
    if cluster is None:
        watch = Watched("--engine", "local", *words)
    else:
        watch = Watched("--address", cluster.address, *words, environment=cluster.environment())
    try:
        yield watch
    finally:
        watch.close()


@contextlib.contextmanager
def driver(cluster: RayCluster, program: str) -> Iterator[subprocess.Popen[str]]:
    """A program of a user, connected to the cluster; entered when it has printed a line."""
    lines = f"import os, ray, sys, time\nray.init(address={cluster.address!r}, log_to_driver=False)\n{program}"
    process = subprocess.Popen(
        [sys.executable, "-c", lines],
        env=cluster.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline(), "the driver ended"
        yield process
    finally:
        process.kill()
        process.communicate()


def figure(entry: Mapping[str, Any], key: str, statistic: str = "mean") -> float:
    return float(entry["figures"][key][statistic])


def kinds(report: Mapping[str, Any]) -> set[str]:
    return {finding["kind"] for finding in report["findings"]}


def finding(report: Mapping[str, Any], kind: str) -> dict[str, Any]:
    (entry,) = [each for each in report["findings"] if each["kind"] == kind]
    return dict(entry)


def node_of(report: Mapping[str, Any], node_id: str) -> dict[str, Any]:
    (entry,) = [each for each in report["nodes"] if each["id"] == node_id]
    return dict(entry)


def task_of(report: Mapping[str, Any], name: str) -> dict[str, Any]:
    (entry,) = [each for each in report["tasks"] if each["name"] == name]
    return dict(entry)
