"""What jobs of a workflow that used more than they requested should request, for summaries and for `check --fix`.

It is what `size` advises from the whole history of each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.model import Requirement

if TYPE_CHECKING:
    from jobmeter.analyse.check import JobVerdict
    from jobmeter.analyse.overuse import Verdict
    from jobmeter.store import Store


class Corrected(NamedTuple):
    sizes: dict[str, Requirement]  # by step; a resource is None if its request is enough
    unknown: list[str]  # steps that have no completed run and met no limit


def corrected_requests(
    store: Store, workflow: str | None, violations: Iterable[JobVerdict], requested: Mapping[str, Requirement]
) -> Corrected:
    """What each step should request instead of `requested`; `workflow` is the workflow's id, None if it has no run."""
    from jobmeter.analyse.correction import corrections
    from jobmeter.analyse.size.predictor import advise
    from jobmeter.store.query.history import name_histories, workflow_histories

    over: dict[str, list[Verdict]] = {}
    for job, verdict in violations:
        over.setdefault(job.step, []).append(verdict)
    histories = workflow_histories(store, workflow, over) if workflow else ()
    by_step = {history.name: history for history in histories}
    sizes, unknown = {}, []
    for step, verdicts in over.items():
        history = by_step.get(step) or next(name_histories(store, step), None)
        advice = advise(step, history.rows if history else [])
        if not advice.completed:
            # What a failed run used is not what it needs; only a run that met a limit shows that it needs more.
            verdicts = [verdict for verdict in verdicts if verdict.cause]
        if verdicts:
            sizes[step] = corrections(verdicts, advice.requirement(), requested[step])
        else:
            unknown.append(step)
    return Corrected(sizes, unknown)
