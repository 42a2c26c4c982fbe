from __future__ import annotations

from jobmeter.analyse.cluster.report import cluster_report
from jobmeter.analyse.cluster.thresholds import DEFAULT
from jobmeter.report.cluster.text import (
    NODE_COLUMNS,
    TASK_COLUMNS,
    finding_text,
    node_rows,
    section_lines,
    shown_columns,
    summary_lines,
    task_rows,
    title,
)
from tests.analyse.cluster.histories import history, values
from tests.report.cluster.test_page import ABOUT, sleeping


def test_the_report_as_text() -> None:
    made = cluster_report(sleeping(), ABOUT, DEFAULT)
    assert "ray cluster head:6379: 2 nodes, watched for 1m 30s (10 samples)" == title(made)
    columns, rows = shown_columns(NODE_COLUMNS, node_rows(made))
    assert ["node", "cpus_reserved", "cpus_used", "memory_used", "cpus", "memory", "cpus_peak", "memory_peak"] == [
        column.name for column in columns
    ]
    assert [
        ["a<b", "4", "0.5", "1 GiB", "4", "16 GiB", "0.5", "1 GiB"],
        ["c", "4", "0.25", "1 GiB", "4", "16 GiB", "0.25", "1 GiB"],
        ["all", "8", "0.75", "2 GiB", "8", "32 GiB", "0.75", "2 GiB"],
    ] == rows
    assert [["train", "4", "", "2", "0.2", "256 MiB"]] == task_rows(made)
    assert len(TASK_COLUMNS) == len(task_rows(made)[0])
    assert ["On average 4 tasks ran (4 at most)."] == summary_lines(made)
    assert (
        "hint: `train` reserves 2 CPUs and uses 0.2, for 1m 30s. Lower num_cpus of `train` to 0.25: up to 32 could run "
        "at a time instead of 4."
    ) == finding_text(made["findings"][0])


def test_a_finding_without_an_effect_ends_with_what_to_do() -> None:
    of = history(*({"n": values(reserved=1.0, used=0.1, cpus=1.0)} for _ in range(10)))
    (finding,) = cluster_report(of, ABOUT, DEFAULT)["findings"]
    assert finding_text(finding).endswith(", for 1m 30s. Lower num_cpus of the running tasks to what they use.")


def test_nodes_that_are_gone_are_marked() -> None:
    of = history(*({"a": values(), "b": values()} for _ in range(3)))
    of.nodes["a"] = of.nodes["a"]._replace(left=5.0, lost="gone")
    of.nodes["b"] = of.nodes["b"]._replace(left=5.0)
    made = cluster_report(of, ABOUT, DEFAULT)
    assert ["a (lost)", "b (left)", "all"] == [row[0] for row in node_rows(made)]


def test_a_section_of_other_text_fits_into_its_width() -> None:
    lines = section_lines(cluster_report(sleeping(), ABOUT, DEFAULT), 60)
    table = [line for line in lines if line.startswith(("node", "a<b", "c ", "all"))]
    assert 4 == len(table)
    assert max(map(len, table)) <= 58
