"""Jobs from Nextflow: the graph of `-with-dag`, and tasks with their requirements of `-with-trace`."""

from __future__ import annotations

import csv
import re
from typing import Any

from jobmeter.errors import UsageError
from jobmeter.exchange.nextflow import header_columns
from jobmeter.workflow.spec.convert.graph_text import Graph
from jobmeter.workflow.spec.convert.snakemake import unique_name

_UNKNOWN = ("", "-")


def nextflow_jobs(graph: Graph, trace: tuple[str, str] | None) -> tuple[list[dict[str, Any]], list[str]]:
    """A job for each task of the trace, or for each process that has none there; and what could not be converted."""
    rows = _rows(*trace) if trace is not None else []
    by_process: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_process.setdefault(_process(row), []).append(row)
    names: dict[str, str] = {}
    of_vertex: dict[str, list[str]] = {}
    jobs: list[dict[str, Any]] = []
    for vertex in graph.vertices.values():
        if not vertex.is_job:
            continue
        short = vertex.label.rpartition(":")[2]
        tasks = by_process.pop(vertex.label, None) or by_process.pop(short, None) or [{}]
        for task in tasks:
            name = names[f"{vertex.id} {len(names)}"] = unique_name(_task_name(short, task), names)
            of_vertex.setdefault(vertex.id, []).append(name)
            jobs.append({"name": name, "labels": {"process": vertex.label}, "id": vertex.id, **_recorded(task)})
    needs = graph.needs()
    for job in jobs:
        job["depends_on"] = [name for before in needs[job["id"]] for name in of_vertex.get(before, [])]
    losses = [
        "files: Nextflow hands them on through channels, so every task waits for all tasks of the processes before it"
    ]
    if trace is None:
        losses.append("tasks and requirements: give the trace of a run with --trace")
    elif by_process:
        losses.append(f"tasks of processes that the graph does not have: {', '.join(sorted(by_process))}")
    return jobs, losses


def _rows(path: str, text: str) -> list[dict[str, str]]:
    lines = text.splitlines()
    columns = header_columns(lines[0]) if lines else None
    if columns is None:
        raise UsageError(f"{path}: is not a trace of Nextflow: its first line names no columns of one")
    delimiter = "\t" if "\t" in lines[0] else ","
    rows = [dict(zip(columns, map(str.strip, cells))) for cells in csv.reader(lines[1:], delimiter=delimiter)]
    newest: dict[str, dict[str, str]] = {}
    for row in rows:  # the last of several attempts
        newest[row.get("name") or row.get("process", "")] = row
    return list(newest.values())


def _process(row: dict[str, str]) -> str:
    return row.get("process") or row.get("name", "").partition(" (")[0]


def _task_name(process: str, row: dict[str, str]) -> str:
    tag = row.get("tag", "")
    if tag in _UNKNOWN:
        match = re.search(r"\((.*)\)$", row.get("name", ""))
        tag = match[1] if match else ""
    return f"{process}_{tag}" if tag else process


def _recorded(row: dict[str, str]) -> dict[str, Any]:
    """The script and the requirement of a task, as far as the trace has them."""
    sizes: dict[str, Any] = {}
    for field, column in (("cpus", "cpus"), ("memory", "memory"), ("runtime", "time")):
        value = row.get(column, "-")
        if value not in _UNKNOWN:
            sizes[field] = _size(field, value)
    recorded: dict[str, Any] = {"resource_requirements": sizes} if sizes else {}
    script = row.get("script", "-").strip()
    if script not in _UNKNOWN:
        recorded["command"] = script
    return recorded


def _size(field: str, value: str) -> Any:
    """A size as specs write it: `2 GB` becomes `2g`; a plain number is bytes of memory, or milliseconds of runtime."""
    if re.fullmatch(r"\d+", value):
        number = int(value)
        return number if field != "runtime" else f"{max(number // 1000, 1)}s"
    if field == "memory" and (match := re.fullmatch(r"([\d.]+) ?([KMGT])i?B", value, re.IGNORECASE)):
        return f"{match[1]}{match[2].lower()}"
    return value
