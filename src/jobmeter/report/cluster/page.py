"""The page of a cluster: what was reserved and what was used on one axis, for all nodes together and for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.analyse.cluster.finding import KINDS
from jobmeter.analyse.cluster.model import History, Values, cluster_values
from jobmeter.report.cluster.text import (
    NODE_COLUMNS,
    TASK_COLUMNS,
    amount,
    finding_text,
    node_rows,
    shown_columns,
    summary_lines,
    task_rows,
    title,
)
from jobmeter.report.page.document import document, tiles
from jobmeter.report.table_layout import Column
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.cluster_types import ClusterReport

_ALL = "all nodes"
_AXIS = "Filled: really used. Dashed: reserved. The long line: what there is."
_IN_SIGHT = 0.2
"""Share of the capacity that curves must reach for it to be drawn: else they would be a flat line at the bottom."""
_MACHINE = "Used is that of its whole machine."
_PROCESSES = "Used is that of the node's own processes: it has not all of its machine."


class _Panel(NamedTuple):
    title: str
    unit: str
    used: str
    reserved: str | None = None
    capacity: str | None = None
    times: float = 1.0  # factor from the unit of the values to that of the axis
    used_name: str = "used"
    reserved_name: str = "reserved"
    is_rate: bool = False


_PANELS = (
    _Panel("CPU", "percent", "used_cpus", "reserved_cpus", "capacity_cpus", 100.0),
    _Panel("Memory", "bytes", "used_memory_bytes", "reserved_memory_bytes", "capacity_memory_bytes"),
    _Panel("GPU", "percent", "used_gpus", "reserved_gpus", "total_gpus", 100.0),
    _Panel("Object store", "bytes", "reserved_object_store_bytes", None, "total_object_store_bytes"),
    _Panel("Spilled", "bytes", "spilled_bytes", used_name="on the disk"),
    _Panel("Tasks", "count", "tasks_running", "tasks_pending", None, used_name="running", reserved_name="waiting"),
    _Panel("Written to disks", "bytes", "disk_write_bytes_per_second", used_name="", is_rate=True),
    _Panel("Network, received", "bytes", "net_received_bytes_per_second", used_name="", is_rate=True),
)


def cluster_page(report: ClusterReport, history: History) -> str:
    """The page, as the text of one HTML file."""
    whole = [(each.seconds, cluster_values(each, history.nodes)) for each in history.samples]
    runs = [_drawn(_ALL, _ALL, whole)]
    for node in history.nodes.values():
        points = [(each.seconds, each.nodes[node.id]) for each in history.samples if node.id in each.nodes]
        runs.append(_drawn(node.id, node.name, points))
    runs = [run for run in runs if run["panels"]]
    drawn = {run["id"] for run in runs}
    body = [
        f"<h1>{escape(title(report))}</h1><p>{escape(' '.join(summary_lines(report)))}</p>",
        f"<section>{tiles(_figures(report))}</section>",
        _findings(report),
        _chart(_ALL, "All nodes", _AXIS, drawn),
        f"<section><h2>Nodes</h2>{_table(NODE_COLUMNS, node_rows(report))}</section>",
        _tasks(report),
        *(
            _chart(node["id"], node["name"], _MACHINE if node["scope"] == "machine" else _PROCESSES, drawn)
            for node in report["nodes"]
            if len(report["nodes"]) > 1
        ),
        *(f"<p>{escape(note)}</p>" for note in report["notes"]),
    ]
    return document(title(report), body, {"runs": runs, "clock": False}, styles=("cluster.css",))


def _figures(report: ClusterReport) -> list[tuple[str, str]]:
    figures = report["cluster"]
    parts = []
    for name, used, whole, unit in (
        ("CPUs reserved", "reserved_cpus", "total_cpus", "count"),
        ("CPUs used", "used_cpus", "capacity_cpus", "count"),
        ("memory reserved", "reserved_memory_bytes", "total_memory_bytes", "bytes"),
        ("memory used", "used_memory_bytes", "capacity_memory_bytes", "bytes"),
        ("GPUs reserved", "reserved_gpus", "total_gpus", "count"),
        ("GPUs used", "used_gpus", "total_gpus", "count"),
    ):
        if used in figures:
            words = _words(figures[used]["mean"], unit)
            of = f" of {_words(figures[whole]['mean'], unit)}" if whole in figures else ""
            parts.append((name, words + of))
    return parts


def _words(value: float, unit: str) -> str:
    return amount(value) if unit == "count" else text(value, unit)


def _findings(report: ClusterReport) -> str:
    if not report["findings"]:
        return "<section><h2>Findings</h2><p>Nothing stands out.</p></section>"
    entries = "".join(
        f'<li class="{escape(each["severity"])}"><b>{escape(KINDS.get(each["kind"], each["kind"]))}</b> '
        f"{escape(finding_text(each).partition(': ')[2])}</li>"
        for each in report["findings"]
    )
    return f'<section><h2>Findings</h2><ul class="findings">{entries}</ul></section>'


def _tasks(report: ClusterReport) -> str:
    rows = task_rows(report)
    if not rows:
        return ""
    about = "How many ran and waited on average, and the CPUs that each requests and uses."
    return f"<section><h2>Tasks</h2><p>{about}</p>{_table(TASK_COLUMNS, rows)}</section>"


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    shown, cells = shown_columns(columns, rows)
    head = "".join(f"<th>{escape(column.name.replace('_', ' '))}</th>" for column in shown)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{f' data-label={chr(34)}{escape(column.name)}{chr(34)}' if at else ''}>{escape(cell)}</td>"
            for at, (column, cell) in enumerate(zip(shown, row))
        )
        + "</tr>"
        for row in cells
    )
    return f'<div class="wide"><table class="cards"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _chart(run: str, heading: str, about: str, drawn: set[str]) -> str:
    if run not in drawn:
        return f"<section><h2>{escape(heading)}</h2><p>There are no samples of it.</p></section>"
    return f'<section><h2>{escape(heading)}</h2><p>{escape(about)}</p><div data-run="{escape(run)}"></div></section>'


def _drawn(run: str, label: str, points: Sequence[tuple[float, Values]]) -> dict[str, Any]:
    panels = [panel for number, each in enumerate(_PANELS) if (panel := _panel(number, each, points)) is not None]
    return {"id": run, "label": label, "panels": panels}


def _panel(number: int, panel: _Panel, points: Sequence[tuple[float, Values]]) -> dict[str, Any] | None:
    """The data of one panel for one chart; None if nothing is known for it, or all values are 0."""

    def line(key: str) -> list[float | None]:
        return [_scaled(values, key, panel.times) for _, values in points]

    used, reserved = line(panel.used), line(panel.reserved) if panel.reserved else []
    if len(points) < 2 or not any((*used, *reserved)):
        return None
    drawn: dict[str, Any] = {
        "title": panel.title,
        "unit": panel.unit,
        "colour": number,
        "by": 1,
        "t": [round(at, 3) for at, _ in points],
        "mean": used,
        "rate": panel.is_rate,
    }
    if panel.used_name:
        drawn["name"] = panel.used_name
    if any(value is not None for value in reserved):
        drawn["requests"], drawn["requests_name"] = reserved, panel.reserved_name
    capacity = [value for value in line(panel.capacity) if value is not None] if panel.capacity else []
    if capacity and (panel.unit == "percent" or _highest(used, reserved) >= _IN_SIGHT * capacity[-1]):
        drawn["capacity"] = capacity[-1]
    return drawn


def _highest(*lines: Sequence[float | None]) -> float:
    return max((value or 0.0 for line in lines for value in line), default=0.0)


def _scaled(values: Mapping[str, float], key: str, times: float) -> float | None:
    return round(values[key] * times, 2) if key in values else None
