"""`jobmeter workflow graph`: which job needs which, as text, as a page or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from jobmeter.byte_text import to_text
from jobmeter.cli.shared.options import Parser, add_store_option
from jobmeter.cli.shared.output import print_json, print_line, print_lines, warn
from jobmeter.cli.workflow.options import add_workflow_argument
from jobmeter.errors import UsageError
from jobmeter.links import open_output
from jobmeter.settings import resolve
from jobmeter.workflow.boxes import in_words, statuses_by_step, step_boxes
from jobmeter.workflow.graph import text_graph
from jobmeter.workflow.history import restored_plan, stored_run
from jobmeter.workflow.plan import Plan, load_plan
from jobmeter.workflow.spec.read.loading import is_spec

_MOST_BOXES = 2000
"""The most boxes of a drawing: more cannot be read, and a browser takes long to show them."""


class _Chosen(NamedTuple):
    """A plan, and the status of its jobs if a run of it is chosen."""

    plan: Plan
    statuses: Mapping[int, str]
    caption: str


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    chosen = _choose(options)
    if options.html is not None:
        _write_page(options.html, chosen, files=options.files)
    if options.json:
        print_json(as_json(chosen, files=options.files))
    elif options.html is None:
        print_lines(text_graph(chosen.plan, _status_texts(chosen), files=options.files))
    else:
        print_line(options.html)
    return 0


def _choose(options: argparse.Namespace) -> _Chosen:
    """The plan of a spec file that is named; else the plan of a stored run, with the status of its jobs."""
    named = options.workflow
    if named is not None and options.run_id is None and is_spec(named):
        plan = load_plan(named)
        return _Chosen(plan, {}, plan.path)
    stored = stored_run(resolve("store", options.store), named, options.run_id, warn)
    status = stored.status()
    caption = f"run {stored.directory.run_id} of {stored.directory.workflow}: {status.state}"
    return _Chosen(restored_plan(stored), {job.number: job.status for job in status.jobs}, caption)


def as_json(chosen: _Chosen, *, files: bool = False) -> dict[str, object]:
    """Every job as a node, and an edge to it from each job that it waits for; with `files`, also the files."""
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
    graph: dict[str, object] = {
        "name": chosen.plan.name,
        "spec": to_text(chosen.plan.path),
        "nodes": nodes,
        "edges": edges,
    }
    return {**graph, "files": _files(chosen.plan)} if files else graph


def _files(plan: Plan) -> list[dict[str, object]]:
    made = {path: job.number for job in plan.jobs for path in job.outputs}
    read: dict[str, list[int]] = {}
    for job in plan.jobs:
        for path in job.inputs:
            read.setdefault(path, []).append(job.number)
    return [
        {
            "path": to_text(path),
            **({"made_by": made[path]} if path in made else {}),
            "read_by": read.get(path, []),
        }
        for path in dict.fromkeys((*made, *read))
    ]


def _write_page(path: str, chosen: _Chosen, *, files: bool) -> None:
    from jobmeter.report.graph.page import graph_page

    boxes, commands = step_boxes(chosen.plan, chosen.statuses, files=files)
    if len(boxes) > _MOST_BOXES:
        raise UsageError(f"--html: {len(boxes):,} boxes are too many for a drawing. --json has them all.")
    jobs = len(chosen.plan.jobs)
    caption = " · ".join(filter(None, (chosen.plan.description, f"{jobs:,} job{'s' * (jobs != 1)}", chosen.caption)))
    try:
        with open(open_output(path), "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(graph_page(chosen.plan.name, caption, boxes, commands))
    except OSError as error:
        advice = "Name a file in a directory that you may write to."
        raise UsageError(f"--html: {path}: {error.strerror}. {advice}") from None


def _status_texts(chosen: _Chosen) -> dict[str, str]:
    """Step → the statuses of its jobs, as text with their numbers; for a single job, its status alone."""
    return {
        step: next(iter(statuses)) if statuses.total() == 1 else in_words(statuses)
        for step, statuses in statuses_by_step(chosen.plan.jobs, chosen.statuses).items()
    }


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow graph",
        "Draw which job of a workflow needs which: of a spec, or of a run of it with the status of its jobs.",
    )
    add_workflow_argument(parser)
    parser.add_argument("--files", action="store_true", help="show the files and user data between the jobs too")
    parser.add_argument("--html", metavar="FILE", help="write the drawing as a page that needs nothing else")
    parser.add_argument("--json", action="store_true", help="print every job and what it waits for as nodes and edges")
    add_store_option(parser)
    return parser.parse_args(arguments)
