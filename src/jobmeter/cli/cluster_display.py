"""The table on a terminal while a cluster is watched: the latest sample, node by node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from jobmeter.analyse.cluster.model import ClusterSample, Values, cluster_values
from jobmeter.cli.shared.live_display import LiveDisplay
from jobmeter.report.cluster.text import amount
from jobmeter.report.table import styled_lines
from jobmeter.report.table_layout import Column, lay_out
from jobmeter.report.wrapping import wrap
from jobmeter.terminal import printable
from jobmeter.units import share_text, text

if TYPE_CHECKING:
    from jobmeter.cluster.monitor import ClusterMonitor

_COLUMNS = (
    Column("node", essential=True, shortens=True),
    Column("reserved", "count", essential=True),
    Column("used", "count", essential=True),
    Column("of", "count", essential=True),
    Column("memory", "bytes", essential=True),
    Column("share", "percent"),
    Column("gpus", "count"),
    Column("store", "bytes"),
    Column("load", "count"),
)
"""The first three numbers are CPUs: reserved, really used, and the capacity."""
_MOST_FINDINGS = 4
_NEAR = 0.9


class ClusterDisplay(LiveDisplay):
    """Shows the latest sample inside its `with` block, and is cleared at the end."""

    def __init__(self, monitor: ClusterMonitor) -> None:
        super().__init__(per_second=2)
        self._monitor = monitor

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from screen_lines(self._monitor, options.max_width, options.size.height)


def screen_lines(monitor: ClusterMonitor, width: int, height: int) -> list[Text]:
    """The lines to show, cut to `width` columns, and no more of them than fit in `height`."""
    history = monitor.history
    sample = history.samples[-1]
    whole = cluster_values(sample, history.nodes)
    rows = sorted(_row(history.nodes[node].name, values) for node, values in sample.nodes.items())
    if len(rows) > 1:
        rows.append(_row("all", whole))
    shown = [at for at, column in enumerate(_COLUMNS) if column.essential or any(row[at] for row in rows)]
    layout = lay_out([_COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows], width)
    lines = [Text(_title(monitor, sample, whole), style="bold")]
    lines += list(styled_lines(layout, _style, has_total=len(rows) > 1))
    for finding in monitor.findings()[:_MOST_FINDINGS]:
        style = "red" if finding.severity == "problem" else "yellow"
        words = printable(f"{finding.seen}: {finding.action}")
        lines += [Text(line, style=style) for line in wrap(words, width, 2)]
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines[: max(height - 1, 1)]


def _title(monitor: ClusterMonitor, sample: ClusterSample, whole: Values) -> str:
    nodes = len(sample.nodes)
    minutes, seconds = divmod(int(sample.seconds), 60)
    parts = [f"{monitor.engine}: {nodes} node{'s' * (nodes != 1)}", f"{minutes}:{seconds:02}"]
    for key, word in (("tasks_running", "running"), ("tasks_pending", "waiting"), ("actors", "actors")):
        if whole.get(key):
            parts.append(f"{amount(whole[key])} {word}")
    return ", ".join(parts)


def _row(name: str, values: Values) -> list[str]:
    def number(key: str) -> str:
        return amount(values[key]) if key in values else ""

    def size(key: str) -> str:
        return text(values[key], "bytes") if key in values else ""

    used, there_is = values.get("used_memory_bytes"), values.get("capacity_memory_bytes")
    gpus = f"{number('used_gpus') or '?'} / {number('reserved_gpus')}" if values.get("total_gpus") else ""
    return [
        printable(name),
        number("reserved_cpus"),
        number("used_cpus"),
        number("capacity_cpus"),
        size("used_memory_bytes"),
        share_text(used / there_is) if used is not None and there_is else "",
        gpus,
        size("reserved_object_store_bytes"),
        number("load1"),
    ]


def _style(column: str, content: str) -> str:
    if column == "share" and content.endswith("%"):
        number = content.strip("<% ")
        return "red" if float(number) >= 100 * _NEAR else ""
    return "cyan" if column == "used" else ""
