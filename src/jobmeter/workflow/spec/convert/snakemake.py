"""Jobs from Snakemake: the graph of `--dag`, and the files and commands of `--summary` or `--detailed-summary`."""

from __future__ import annotations

import re
from typing import Any

from jobmeter.workflow.spec.convert.graph_text import Graph

_UNKNOWN = ("", "-")


def is_summary(text: str) -> bool:
    """Whether a text is what `snakemake --summary` or `--detailed-summary` prints."""
    columns = text.split("\n", 1)[0].split("\t")
    return columns[0] == "output_file" and "rule" in columns


def snakemake_jobs(graph: Graph, summary: str | None) -> tuple[list[dict[str, Any]], list[str]]:
    """A job for each node, and what could not be converted. The rule `all`, which does no work, is left out."""
    names: dict[str, str] = {}
    jobs: list[dict[str, Any]] = []
    losses = []
    targets = [
        vertex.id
        for vertex in graph.vertices.values()
        if vertex.label.split("\n")[0] == "all" and all(start != vertex.id for start, _ in graph.edges)
    ]
    if targets:
        losses.append("the rule `all`, which does nothing: every job runs anyway")
    for vertex in graph.vertices.values():
        if vertex.id in targets:
            continue
        rule, *wildcards = vertex.label.split("\n")
        values = dict(line.split(": ", 1) for line in wildcards if ": " in line)
        names[vertex.id] = unique_name("_".join([rule, *values.values()]), names)
        jobs.append({"name": names[vertex.id], "labels": {"rule": rule, **values}, "id": vertex.id})
    needs = graph.needs()
    for job in jobs:
        job["depends_on"] = [names[before] for before in needs[job["id"]] if before in names]
    if summary is None:
        losses.append("files: `snakemake --summary` has them")
    else:
        losses += _add_files(jobs, summary)
    losses.append(
        "threads, memory and runtime: Snakemake does not print them. `jobmeter size` finds out what to request"
    )
    return jobs, losses


def summary_jobs(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    """A job for each output file of a summary without a graph: dependencies follow from input files, if recorded."""
    jobs: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for row in _rows(text):
        name = names[row["output_file"]] = unique_name(f"{row['rule']}_{_word(row['output_file'])}", names)
        jobs.append({"name": name, "labels": {"rule": row["rule"]}, **_files(row)})
    losses = ["threads, memory and runtime: a summary does not have them"]
    if not any("inputs" in job for job in jobs):
        losses.append("dependencies: `snakemake --dag`, or --detailed-summary after a run, has them")
    return jobs, losses


def _add_files(jobs: list[dict[str, Any]], summary: str) -> list[str]:
    """Give each job the outputs of its rule that have its wildcards in their names."""
    unplaced = []
    for row in _rows(summary):
        of_rule = [job for job in jobs if job["labels"]["rule"] == row["rule"]]
        fitting = [job for job in of_rule if all(value in row["output_file"] for value in _wildcards(job))]
        if len(fitting) != 1:
            unplaced.append(row["output_file"])
            continue
        files = _files(row)
        job = fitting[0]
        for field in ("inputs", "outputs"):
            job[field] = list(dict.fromkeys([*job.get(field, []), *files.get(field, [])]))
        if "command" in files:
            job["command"] = files["command"]
    return [f"outputs that fit no job, or several: {', '.join(unplaced)}"] if unplaced else []


def _wildcards(job: dict[str, Any]) -> list[str]:
    return [value for name, value in job["labels"].items() if name != "rule"]


def _files(row: dict[str, str]) -> dict[str, Any]:
    files: dict[str, Any] = {"outputs": [row["output_file"]]}
    if row.get("input-file(s)", "-") not in _UNKNOWN:
        files["inputs"] = [path for path in row["input-file(s)"].split(",") if path]
    if row.get("shellcmd", "-") not in _UNKNOWN:
        files["command"] = row["shellcmd"]
    return files


def _rows(text: str) -> list[dict[str, str]]:
    lines = [line.split("\t") for line in text.splitlines() if line.strip()]
    return [dict(zip(lines[0], line)) for line in lines[1:] if len(line) >= 3]


def _word(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("_")


def unique_name(name: str, names: dict[str, str]) -> str:
    """`name`, made valid for a job and different from all in `names`."""
    name = _word(name)[:200] or "job"
    taken, number, candidate = set(names.values()), 2, name
    while candidate in taken:
        candidate = f"{name}_{number}"
        number += 1
    return candidate
