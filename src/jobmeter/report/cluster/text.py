"""The tables and sentences of what a cluster reserved and used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jobmeter.report.table import fitted_lines
from jobmeter.report.table_layout import Column
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.cluster_types import ClusterReport, FigureOverTime, FindingReport, TaskReport

NODE_COLUMNS = (
    Column("node", essential=True, shortens=True),
    Column("cpus_reserved", "count", essential=True),
    Column("cpus_used", "count", essential=True),
    Column("memory_used", "bytes", essential=True),
    Column("cpus", "count"),
    Column("memory", "bytes"),
    Column("cpus_peak", "count"),
    Column("memory_peak", "bytes"),
    Column("memory_reserved", "bytes"),
    Column("gpus_reserved", "count"),
    Column("gpus_used", "count"),
    Column("object_store", "bytes"),
    Column("spilled", "bytes"),
)
"""Means over time, unless the heading says otherwise."""
_CELLS = (
    ("reserved_cpus", "mean"),
    ("used_cpus", "mean"),
    ("used_memory_bytes", "mean"),
    ("capacity_cpus", "last"),
    ("capacity_memory_bytes", "last"),
    ("used_cpus", "peak"),
    ("used_memory_bytes", "peak"),
    ("reserved_memory_bytes", "mean"),
    ("reserved_gpus", "mean"),
    ("used_gpus", "mean"),
    ("reserved_object_store_bytes", "mean"),
    ("spilled_bytes", "peak"),
)
TASK_COLUMNS = (
    Column("task", essential=True, shortens=True),
    Column("running", "count", essential=True),
    Column("waiting", "count"),
    Column("requests", "count", essential=True),
    Column("uses", "count", essential=True),
    Column("memory", "bytes"),
)
"""The last three are per task; `requests` and `uses` are CPUs."""
_MOST_TASKS = 10


def title(report: ClusterReport) -> str:
    nodes = report["cluster"].get("nodes", {"last": 0.0})["last"]
    where = report["address"] if report["engine"] == "local" else f"{report['engine']} cluster {report['address']}"
    return (
        f"{where}: {nodes:.0f} node{'s' * (nodes != 1)}, watched for {text(report['seconds'], 'seconds')} "
        f"({report['samples']:,} samples)"
    )


def node_rows(report: ClusterReport) -> list[list[str]]:
    """One row per node, and a last one for all nodes together."""
    rows = [[node["name"] + _gone(node), *_cells(node["figures"])] for node in report["nodes"]]
    return [*rows, ["all", *_cells(report["cluster"])]] if len(rows) > 1 else rows


def shown_columns(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> tuple[list[Column], list[list[str]]]:
    """The columns that are essential or have a value, and the rows with only these columns."""
    shown = [at for at, column in enumerate(columns) if column.essential or any(row[at] for row in rows)]
    return [columns[at] for at in shown], [[row[at] for at in shown] for row in rows]


def _gone(node: Mapping[str, object]) -> str:
    return " (lost)" if "lost" in node else " (left)" if "left_seconds" in node else ""


def _cells(figures: Mapping[str, FigureOverTime]) -> list[str]:
    return [_cell(figures.get(key), statistic) for key, statistic in _CELLS]


def _cell(figure: FigureOverTime | None, statistic: str) -> str:
    if figure is None:
        return ""
    value: float = figure[statistic]  # type: ignore[literal-required]
    return amount(value) if figure["unit"] == "count" else text(value, figure["unit"])


def amount(value: float) -> str:
    """A number of CPUs and the like, with as many decimals as mean something."""
    if 0 < value < 0.005:
        return "< 0.01"
    return text(round(value, 2 if abs(value) < 10 else 1), "count")


def task_rows(report: ClusterReport) -> list[list[str]]:
    """The tasks that used most, by name."""
    return [_task_row(task) for task in report["tasks"][:_MOST_TASKS]]


def _task_row(task: TaskReport) -> list[str]:
    figures = task["figures"]
    running = figures["running"]["mean"] if "running" in figures else 0.0

    def each(key: str) -> float | None:
        return figures[key]["mean"] / running if key in figures and running > 0 else None

    used, memory = each("used_cpus"), each("used_memory_bytes")
    request = task.get("request")
    return [
        task["name"],
        amount(running),
        amount(figures["pending"]["mean"]) if "pending" in figures else "",
        "" if request is None else amount(request.get("cpus", 0.0)),
        "" if used is None else amount(used),
        "" if memory is None else text(memory, "bytes"),
    ]


def summary_lines(report: ClusterReport) -> list[str]:
    """Nodes, tasks and actors over time, in sentences."""
    figures, lines = report["cluster"], []
    nodes = figures.get("nodes")
    if nodes is not None and nodes["min"] != nodes["peak"]:
        lines.append(f"Between {nodes['min']:.0f} and {nodes['peak']:.0f} nodes.")
    parts = [
        f"{amount(figures[key]['mean'])} {words} ({amount(figures[key]['peak'])} at most)"
        for key, words in (("tasks_running", "tasks ran"), ("tasks_pending", "waited"), ("actors", "actors"))
        if key in figures and figures[key]["peak"]
    ]
    if parts:
        lines.append(f"On average {', '.join(parts)}.")
    return lines


def section_lines(report: ClusterReport, width: int | None) -> list[str]:
    """The whole report as a part of other text."""
    columns, rows = shown_columns(NODE_COLUMNS, node_rows(report))
    table = fitted_lines(columns, rows, width and width - 2, "the page has all")
    return [title(report), *table, *summary_lines(report), *map(finding_text, report["findings"])]


def finding_text(finding: FindingReport) -> str:
    """`seen, for how long. What to do: what that would bring.` Without the last part if the effect is empty."""
    where = f"{finding['subject']}: " if finding["subject"].startswith("node ") else ""
    effect = f": {finding['effect']}" if finding["effect"] else ""
    return (
        f"{finding['severity']}: {where}{finding['seen']}, for {text(round(finding['seconds'], 1), 'seconds')}. "
        f"{_sentence(finding['action'])}{effect}."
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
