"""Another kind of cluster is one class, and one line that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import jobmeter
from jobmeter.cluster import SOURCES
from jobmeter.cluster.contract import ClusterReading, NodeState
from tests.cluster.watching import figure
from tests.records import violations_of_schema


class TwoNodes:
    """A cluster of two nodes, of which one works."""

    def __init__(self, address: str | None, store: str, warn: Callable[[str], None]) -> None:
        self.notes: list[str] = []
        self._address = address or "here"

    def open(self) -> str:
        return self._address

    def read(self) -> ClusterReading:
        nodes = {name: NodeState(name, name, "host", "machine") for name in ("a", "b")}
        return ClusterReading(nodes, {"a": {"used_cpus": 3.0, "capacity_cpus": 4.0}, "b": {"used_cpus": 0.0}})

    def cpu_seconds(self) -> float:
        return 0.0

    def close(self) -> None:
        self.notes.append("closed")


def test_a_source_that_is_named_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "two", f"{__name__}:TwoNodes")
    with jobmeter.ClusterMonitor("two", "there", store=str(tmp_path)) as monitor:
        monitor.poll()
    report = monitor.report()
    assert [] == violations_of_schema("cluster", report)
    assert ("two", "there", ["closed"]) == (report["engine"], report["address"], report["notes"])
    assert {"a": 3.0, "b": 0.0} == {node["name"]: figure(node, "used_cpus", "last") for node in report["nodes"]}
