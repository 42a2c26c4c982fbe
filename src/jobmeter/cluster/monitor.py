"""Watches a cluster: polls its source, keeps the samples, and reports what was reserved and what was used."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jobmeter.analyse.cluster.findings import cluster_findings
from jobmeter.analyse.cluster.model import ClusterSample, History, Node
from jobmeter.analyse.cluster.report import cluster_report
from jobmeter.analyse.cluster.thresholds import DEFAULT, Thresholds
from jobmeter.atomic_file import replacing
from jobmeter.byte_text import json_text
from jobmeter.cluster import load_source
from jobmeter.cluster.contract import ClusterReading
from jobmeter.cluster.storage import SampleFile
from jobmeter.errors import JobmeterError, UsageError
from jobmeter.record.build import new_run_id
from jobmeter.session.measuring import ignore
from jobmeter.settings import resolve
from jobmeter.times import utc

if TYPE_CHECKING:
    from jobmeter.analyse.cluster.finding import ClusterFinding
    from jobmeter.record.cluster_types import ClusterReport

Warn = Callable[[str], None]


class ClusterMonitor:
    """Watches a cluster: what its nodes reserved, and what they really used.

    with jobmeter.ClusterMonitor("ray") as monitor:
        ...
    print(monitor.report()["findings"])
    """

    def __init__(
        self,
        engine: str = "local",
        address: str | None = None,
        *,
        interval: float = 5.0,
        thresholds: Thresholds = DEFAULT,
        store: str | None = None,
        keep: bool = True,
        warn: Warn | None = None,
    ) -> None:
        """`engine`: ray or local. Nothing is connected before `start`. With `keep`, samples are stored as they come."""
        if interval <= 0:
            raise UsageError(f"interval: {interval!r} is not above 0")
        self.id = new_run_id()
        self.engine = engine
        self.interval = interval
        self.thresholds = thresholds
        self.history = History()
        self.is_idle = False
        self._store: str = resolve("store", store)
        self._keep = keep
        self._warn = warn or ignore
        self._source = load_source(engine, address, self._store, self._warn)
        self._file: SampleFile | None = None
        self._about: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._started = self._began_cpu = 0.0
        self._ended = False
        self._reported_notes = 0

    @property
    def notes(self) -> list[str]:
        """What could not be read, and why."""
        return self._source.notes

    def start(self) -> None:
        """Connect, and take the first sample. LaunchError when there is no cluster."""
        address = self._source.open()
        self._began_cpu = time.process_time()
        self._about = {
            "id": self.id,
            "engine": self.engine,
            "address": address,
            "started": utc(time.time()),
            "interval_seconds": self.interval,
        }
        try:
            if self._keep:
                self._file = SampleFile(self._store, self._about)
            self.poll()
        except BaseException:
            self._source.close()
            raise

    def poll(self) -> ClusterSample:
        """Take a sample now, and return it. LaunchError when the cluster is no longer there."""
        with self._lock:
            reading = self._source.read()
            if not self.history.samples:
                self._started = time.monotonic()  # starting the samplers on the nodes may have taken a while
            seconds = time.monotonic() - self._started
            span = seconds - self.history.seconds if self.history.samples else 0.0
            self._follow_nodes(reading, seconds)
            self.history.requests.update(reading.requests)
            sample = ClusterSample(seconds, span, reading.values, reading.tasks, reading.waiting, reading.cluster)
            self.history.add(sample)
            self.is_idle = reading.is_idle
            if self._file is not None:
                self._file.add(self.history, sample)
            self._report_notes()
        return sample

    def _report_notes(self) -> None:
        for note in self._source.notes[self._reported_notes :]:
            self._warn(note)
        self._reported_notes = len(self._source.notes)

    def _follow_nodes(self, reading: ClusterReading, seconds: float) -> None:
        nodes = self.history.nodes
        for state in reading.nodes.values():
            before = nodes.get(state.id)
            joined = before.joined if before is not None else seconds if self.history.samples else 0.0
            nodes[state.id] = Node(state.id, state.name, state.host, state.scope, joined)
        for gone in reading.lost:
            if gone.id in nodes and nodes[gone.id].left is None:
                nodes[gone.id] = nodes[gone.id]._replace(left=seconds, lost=gone.why)

    def stop(self) -> None:
        """Take a last sample, and remove what was started on the nodes. What was seen stays."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._ended or not self._about:
            return
        self._ended = True
        try:
            if time.monotonic() - self._started - self.history.seconds > self.interval / 10:
                self.poll()
        except JobmeterError as error:
            if str(error) not in self.notes:
                self.notes.append(str(error))
        self._about["ended"] = utc(time.time())
        self._about["monitor_cpu_seconds"] = round(
            time.process_time() - self._began_cpu + self._source.cpu_seconds(), 3
        )
        self._source.close()
        if self._file is not None:
            last = {name: self._about[name] for name in ("ended", "monitor_cpu_seconds")}
            self._file.end({**last, "notes": self._source.notes})
            if self._file.failed:
                self._warn(f"samples are missing in the store: {self._file.failed}")

    def findings(self) -> list[ClusterFinding]:
        """What stands out so far."""
        return cluster_findings(self.history, self.thresholds)

    def report(self) -> ClusterReport:
        """All figures and findings so far, as `jobmeter schema cluster` describes them."""
        with self._lock:
            return cluster_report(self.history, {**self._about, "notes": self._source.notes}, self.thresholds)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report: a page if the name ends in .html, else JSON."""
        from jobmeter.report.cluster.page import cluster_page

        name = os.fspath(path)
        with self._lock:
            report = cluster_report(self.history, {**self._about, "notes": self._source.notes}, self.thresholds)
            content = cluster_page(report, self.history) if name.endswith((".html", ".htm")) else ""
        with replacing(name) as file:
            file.write(content or json_text(report, indent=2) + "\n")

    def run_in_background(self) -> None:
        """Poll in a thread of its own, until `stop`."""
        self._thread = threading.Thread(target=self._poll_until_stopped, name="jobmeter-cluster", daemon=True)
        self._thread.start()

    def _poll_until_stopped(self) -> None:
        due = self._started + self.interval
        while not self._stop.wait(max(due - time.monotonic(), 0.0)):
            try:
                self.poll()
            except JobmeterError as error:
                self._source.notes.append(str(error))
                return
            due = max(due + self.interval, time.monotonic())

    def __enter__(self) -> ClusterMonitor:
        self.start()
        self.run_in_background()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
