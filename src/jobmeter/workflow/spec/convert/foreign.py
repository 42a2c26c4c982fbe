"""Makes a spec to start from, of what Snakemake or Nextflow printed: names, dependencies, requirements."""

from __future__ import annotations

from typing import Any, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.workflow.spec.convert.graph_text import read_graph
from jobmeter.workflow.spec.convert.nextflow import nextflow_jobs
from jobmeter.workflow.spec.convert.snakemake import is_summary, snakemake_jobs, summary_jobs

PLACEHOLDER = 'echo "write the command of $JOBMETER_JOB_NAME here" >&2; exit 1'
"""The command of a job whose own is not recorded. It fails, so that it cannot be mistaken for the job's work."""


class ForeignSpec(NamedTuple):
    """The values of the spec, and what could not be converted."""

    tool: str
    values: dict[str, Any]
    losses: list[str]


def is_foreign(text: str) -> bool:
    """Whether a text is a graph or a summary of another tool."""
    return read_graph(text) is not None or is_summary(text)


def foreign_spec(path: str, text: str, name: str, extra: tuple[str, str] | None) -> ForeignSpec:
    """The spec of a graph or summary; `extra` is the path and text of a trace or a summary that goes with it."""
    graph = read_graph(text)
    if graph is None:
        jobs, losses = summary_jobs(text)
        return _spec("Snakemake", name, jobs, losses)
    if graph.tool == "Snakemake":
        if extra is not None and not is_summary(extra[1]):
            raise UsageError(f"{extra[0]}: is not what `snakemake --summary` prints")
        jobs, losses = snakemake_jobs(graph, None if extra is None else extra[1])
    else:
        jobs, losses = nextflow_jobs(graph, extra)
    if not jobs:
        raise UsageError(f"{path}: there is no job in this graph")
    return _spec(graph.tool, name, jobs, losses)


def _spec(tool: str, name: str, jobs: list[dict[str, Any]], losses: list[str]) -> ForeignSpec:
    without = [job["name"] for job in jobs if "command" not in job]
    if without:
        losses = [*losses, f"the commands of {len(without)} jobs: a failing one stands in their place"]
    for job in jobs:
        job.setdefault("command", PLACEHOLDER)
    ordered = [{key: job[key] for key in _ORDER if job.get(key)} for job in jobs]
    return ForeignSpec(tool, {"name": name, "jobs": ordered}, losses)


_ORDER = ("name", "command", "depends_on", "inputs", "outputs", "resource_requirements", "labels")
