"""A spec in another format: the same plan, with its comments where both formats have them."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.workflow.plan import Plan
from jobmeter.workflow.spec.convert.comments import HAS_COMMENTS, Comments
from jobmeter.workflow.spec.convert.writers import write_nodes
from jobmeter.workflow.spec.plan.planning import make_plan
from jobmeter.workflow.spec.read.loading import FORMATS, parse_document, read_document
from jobmeter.workflow.spec.read.nodes import Mapping, TextPosition, node_of


class Converted(NamedTuple):
    """The new text, the number of jobs, and a line for each thing that could not be converted."""

    text: str
    jobs: int
    losses: list[str]


def convert_spec(path: str, kind: str) -> Converted:
    """The spec in a file, in the format `kind`. Raises UsageError if it is not valid, or cannot be written in it."""
    document = read_document(path)
    plan = make_plan(document)
    comments = Comments(document)
    losses = []
    if comments.count and kind not in HAS_COMMENTS:
        losses.append(f"{comments.count} comment{'s' * (comments.count > 1)}: {kind} has none")
    assert isinstance(document.root, Mapping), "the plan was made of it"
    text = write_nodes(kind, document.root, comments)
    _check_same(path, kind, plan, text)
    return Converted(text, len(plan.jobs), losses)


def write_values(values: dict[str, Any], kind: str, notes: list[str]) -> str:
    """A spec made from values, with notes as comments at its top."""
    start = TextPosition(0, 0, 0)
    root = node_of(values, start, start)
    assert isinstance(root, Mapping)
    mark = HAS_COMMENTS.get(kind)
    head = "".join(f"{mark} {note}\n" for note in notes) if mark else ""
    return head + write_nodes(kind, root, Comments(None))


def _check_same(path: str, kind: str, plan: Plan, text: str) -> None:
    """Raise UsageError unless the new text gives the same plan, so that no wrong conversion goes unnoticed."""
    extension = next(extension for extension, name in FORMATS.items() if name == kind)
    new_path = os.path.splitext(path)[0] + extension
    try:
        new = make_plan(parse_document(new_path, text))
    except UsageError as error:
        raise UsageError(f"{path}: cannot be written as {kind} ({error.lines[0]})") from None
    if new._replace(path="", name="") != plan._replace(path="", name=""):
        different = [job.name for job, other in zip(plan.jobs, new.jobs) if job != other]
        where = f" job {different[0]!r}" if different else ""
        raise UsageError(f"{path}: cannot be written as {kind}:{where} would not be the same")
