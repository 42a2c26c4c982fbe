"""Finds what `plot` is to show: runs by name, jobs of a workflow by their numbers, or a whole workflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.store.query.check_subject import resolve_run_or_suggest, workflow_run
from jobmeter.store.query.selection import Selection

if TYPE_CHECKING:
    from jobmeter.store import Store


class PlotSubject(NamedTuple):
    """The ids of runs; if there are none, all jobs of one run of a workflow."""

    ids: list[str]
    workflow: tuple[str, int] | None = None  # its id, and the number of its run


def plot_subject(store: Store, names: Sequence[str], job_ids: Sequence[str], run: int | None) -> PlotSubject:
    """The runs that these names and numbers select; without any, the last run.

    A number is that of a job, as `check` prints it: in the workflow that is named, else in the newest run of any
    workflow. Raises UsageError for names and numbers that do not exist.
    """
    workflows: list[tuple[str, int]] = []
    ids: list[str] = []
    for name in names:
        workflow = store.find_workflow(name)
        if workflow is not None:
            workflows.append((workflow, workflow_run(store, workflow, run)))
        else:
            ids.append(resolve_run_or_suggest(store, name))
    if run is not None and not workflows and not job_ids:
        raise UsageError("--run-id selects a run of a workflow. Name the workflow.")
    if job_ids:
        return PlotSubject([*ids, *_jobs(store, job_ids, workflows, run)])
    if len(workflows) == 1 and not ids:
        return PlotSubject([], workflows[0])
    for workflow, number in workflows:
        ids += [row["id"] for row in store.runs(Selection(workflow=workflow, workflow_run=number, descending=False))]
    return PlotSubject(ids or [store.resolve("last")])


def _jobs(store: Store, job_ids: Sequence[str], workflows: list[tuple[str, int]], run: int | None) -> list[str]:
    """The ids of the runs of these jobs, every attempt. A text that is not a number is the name of a run."""
    if len(workflows) > 1:
        raise UsageError("--job-ids: are numbers of the jobs of one workflow. Name one.")
    numbered = [text for text in job_ids if text.isdecimal()]
    workflow = workflows[0] if workflows else _newest(store, run) if numbered else None
    by_number: dict[int, list[str]] = {}
    if workflow is not None:
        for row in store.runs(Selection(workflow=workflow[0], workflow_run=workflow[1], descending=False)):
            by_number.setdefault(row["workflow_job"]["job_id"], []).append(row["id"])
    ids: list[str] = []
    for text in job_ids:
        if workflow is None or not text.isdecimal():
            ids.append(resolve_run_or_suggest(store, text))
        elif int(text) in by_number:
            ids += by_number[int(text)]
        else:
            raise UsageError(
                f"--job-ids: run {workflow[1]} of {workflow[0]} has no run of job {text}. "
                f"`jobmeter workflow results {workflow[0]}` lists its jobs."
            )
    return ids


def _newest(store: Store, run: int | None) -> tuple[str, int] | None:
    """The workflow that was run last, and the number `run` or else that of its last run. None if none was run."""
    newest = next(store.runs(Selection(where="workflow != ''", limit=1)), None)
    if newest is None:
        return None
    return newest["workflow"], workflow_run(store, newest["workflow"], newest["workflow_run"] if run is None else run)
