"""`jobmeter workflow graph`: which job needs which, as text, as a page or as JSON."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.workflow.options import add_workflow_argument
from jobmeter.cli.workflow.requirement_text import asked_in_words
from jobmeter.errors import UsageError
from jobmeter.model import Requirement
from jobmeter.report.graph.drawing import Box
from jobmeter.report.table import printable
from jobmeter.settings import resolve
from jobmeter.workflow.graph import steps, text_graph
from jobmeter.workflow.history import StoredRun, stored_run
from jobmeter.workflow.plan import Job, Monitor, Plan, Retry, load_plan
from jobmeter.workflow.spec.read.loading import FORMATS

_MOST_BOXES = 2000
"""More are no drawing any more, and a browser needs long for them."""


class _Chosen(NamedTuple):
    """A plan, and how its jobs fared where a run of it is meant."""

    plan: Plan
    statuses: Mapping[int, str]
    told: str


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    chosen = _choose(options)
    if options.html is not None:
        _write_page(options.html, chosen)
    if options.json:
        print(json.dumps(as_json(chosen), indent=2))
    elif options.html is None:
        print("\n".join(map(printable, text_graph(chosen.plan, _fates(chosen)))))
    else:
        print(options.html)
    return 0


def _choose(options: argparse.Namespace) -> _Chosen:
    """The spec in a file that is named; else the run that is meant, with what became of its jobs."""
    named = options.workflow
    if named is not None and options.run_id is None and named.lower().endswith(tuple(FORMATS)):
        plan = load_plan(named)
        return _Chosen(plan, {}, plan.path)
    stored = stored_run(resolve("store", options.store), named, options.run_id, warn)
    status = stored.status()
    told = f"run {stored.directory.run_id} of {stored.directory.workflow}: {status.state}"
    return _Chosen(_kept_plan(stored), {job.number: job.status for job in status.jobs}, told)


def _kept_plan(stored: StoredRun) -> Plan:
    """The plan of a run, as far as it was stored."""
    jobs = []
    for job in stored.plan["jobs"]:
        asked = Requirement(**job["requirement"])
        jobs.append(
            Job(
                number=job["job_id"],
                name=job["name"],
                step=job["step"],
                command=[],
                script=job["command"],
                directory="",
                environment={},
                requirement=asked,
                gpus=asked.gpus or 0,
                requirement_name=None,
                blocked_by=tuple(job["blocked_by"]),
                inputs=(),
                outputs=(),
                retry=Retry(),
                priority=0,
                labels={},
                container=None,
            )
        )
    plan = stored.plan
    return Plan(plan["name"], plan["description"], plan["user"], plan["spec"], Monitor(), False, jobs)


def as_json(chosen: _Chosen) -> dict[str, object]:
    """Every job as a node, and an edge to it from each job that it waits for."""
    nodes = []
    for job in chosen.plan.jobs:
        node = {
            "job_id": job.number,
            "name": job.name,
            "step": job.step,
            "command": job.script,
            "requirement": job.requirement.requested(),
        }
        if job.number in chosen.statuses:
            node["status"] = chosen.statuses[job.number]
        nodes.append(node)
    edges = [{"from": before, "to": job.number} for job in chosen.plan.jobs for before in job.blocked_by]
    return {"name": chosen.plan.name, "spec": chosen.plan.path, "nodes": nodes, "edges": edges}


def _write_page(path: str, chosen: _Chosen) -> None:
    from jobmeter.report.graph.page import graph_page

    boxes, commands = _boxes(chosen)
    if len(boxes) > _MOST_BOXES:
        raise UsageError(f"--html: {len(boxes):,} boxes are too many for a drawing. --json has them all.")
    jobs = len(chosen.plan.jobs)
    told = " · ".join(filter(None, (chosen.plan.description, f"{jobs:,} job{'s' * (jobs != 1)}", chosen.told)))
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(graph_page(chosen.plan.name, told, boxes, commands))
    except OSError as error:
        advice = "Name a file in a directory that you may write to."
        raise UsageError(f"--html: {path}: {error.strerror}. {advice}") from None


def _by_step(chosen: _Chosen) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in chosen.plan.jobs:
        found.setdefault(job.step, []).append(job)
    return found


def _statuses(chosen: _Chosen, jobs: list[Job]) -> Counter[str]:
    return Counter(chosen.statuses[job.number] for job in jobs if job.number in chosen.statuses)


def _counted(statuses: Counter[str]) -> str:
    """`98 completed, 2 failed`."""
    return ", ".join(f"{number:,} {status}" for status, number in statuses.items())


def _fates(chosen: _Chosen) -> dict[str, str]:
    """Step → how its jobs fared, in words; of a single job without a number."""
    if not chosen.statuses:
        return {}
    found = {step: _statuses(chosen, jobs) for step, jobs in _by_step(chosen).items()}
    return {
        step: next(iter(statuses)) if statuses.total() == 1 else _counted(statuses) for step, statuses in found.items()
    }


def _boxes(chosen: _Chosen) -> tuple[list[Box], list[str]]:
    """A box for each step, and the commands of the steps: of a sweep the first as an example."""
    by_step = _by_step(chosen)
    boxes, commands = [], []
    for step in steps(chosen.plan.jobs):
        jobs = by_step[step.name]
        first = jobs[0]
        asked = asked_in_words(first.requirement)
        statuses = _statuses(chosen, jobs)
        example = f"for example {first.name}:\n" if step.jobs > 1 else ""
        count = f"{step.jobs:,} jobs" if step.jobs > 1 else ""
        told = "\n".join(filter(None, (step.name, count, _counted(statuses), asked, example + first.script)))
        boxes.append(Box(step.name, step.jobs, step.level, step.after, asked, told, statuses))
        commands.append(first.script)
    return boxes, commands


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow graph",
        "Draw which job of a workflow needs which: of a spec, or of a run of it with how its jobs fared.",
    )
    add_workflow_argument(parser)
    parser.add_argument("--html", metavar="FILE", help="write the drawing as a page that needs nothing else")
    parser.add_argument("--json", action="store_true", help="print every job and what it waits for as nodes and edges")
    parser.add_argument("--store", metavar="DIR", help="where runs are kept (default: the XDG data directory)")
    return parser.parse_args(arguments)
