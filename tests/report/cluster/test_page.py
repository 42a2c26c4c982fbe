"""The page of a cluster."""

from __future__ import annotations

import json
import re
from typing import Any

from jobmeter.analyse.cluster.model import History
from jobmeter.analyse.cluster.report import cluster_report
from jobmeter.analyse.cluster.thresholds import DEFAULT
from jobmeter.report.cluster.page import cluster_page
from tests.analyse.cluster.histories import history, values

ABOUT = {
    "id": "abc", "engine": "ray", "address": "head:6379", "started": "2026-01-31T12:00:00.000Z",
    "interval_seconds": 10.0, "notes": ["a <note>"],
}  # fmt: skip


def sleeping(name: str = "train") -> History:
    samples = [{"a<b": values(reserved=4.0, used=0.5), "c": values(reserved=4.0, used=0.25)} for _ in range(10)]
    task = {name: {"running": 4.0, "used_cpus": 0.8, "waited_cpus": 0.0, "used_memory_bytes": 2.0**30}}
    return history(*samples, tasks=[task] * 10, requests={name: {"cpus": 2.0}})


def page_of(of: History) -> str:
    return cluster_page(cluster_report(of, ABOUT, DEFAULT), of)


def data_of(page: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(text)


def test_reserved_and_used_are_on_one_axis_for_all_nodes_and_for_each() -> None:
    runs = data_of(page_of(sleeping()))["runs"]
    assert ["all nodes", "a<b", "c"] == [run["id"] for run in runs]
    for run, used, reserved, capacity in zip(runs, (75.0, 50.0, 25.0), (800.0, 400.0, 400.0), (800.0, 400.0, 400.0)):
        panel = run["panels"][0]
        assert ("CPU", "percent", "used", "reserved") == (
            panel["title"], panel["unit"], panel["name"], panel["requests_name"],
        )  # fmt: skip
        assert (used, reserved, capacity) == (panel["mean"][-1], panel["requests"][-1], panel["capacity"])
        assert 10 == len(panel["t"]) == len(panel["mean"]) == len(panel["requests"])


def test_findings_tables_and_notes_are_on_the_page() -> None:
    page = page_of(sleeping())
    assert "<b>CPUs are reserved and not used.</b> `train` reserves 2 CPUs and uses 0.2" in page
    assert "Lower num_cpus of `train` to 0.25" in page
    assert "a &lt;note&gt;" in page
    assert '<td data-label="uses">0.2</td>' in page


def test_nothing_in_a_name_is_markup() -> None:
    page = page_of(sleeping("<script>alert(1)</script>"))
    assert "<script>alert(1)" not in page
    assert "<h2>a&lt;b</h2>" in page


def test_what_was_never_read_is_no_curve() -> None:
    of = history(*({"n": {"used_cpus": 1.0}} for _ in range(3)))
    (run, _) = data_of(page_of(of))["runs"]
    assert ["CPU"] == [panel["title"] for panel in run["panels"]]
    assert "requests" not in run["panels"][0]
    assert "capacity" not in run["panels"][0]


def test_one_sample_makes_a_page_without_curves() -> None:
    assert [] == data_of(page_of(history({"n": values(used=1.0)})))["runs"]
