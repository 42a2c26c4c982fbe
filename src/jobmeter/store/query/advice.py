"""Advises what to request next time for jobs that have a history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from jobmeter.analyse.size.advice import Advice
from jobmeter.analyse.size.need import NO_FEATURES, Features
from jobmeter.analyse.size.policy import Policy
from jobmeter.analyse.size.predictor import Pools, Predictor, fit
from jobmeter.errors import UsageError
from jobmeter.store.query.history import History, name_histories, source_histories, workflow_histories
from jobmeter.store.query.newest_import import imported_last
from jobmeter.store.query.run_names import did_you_mean
from jobmeter.store.query.selection import Selection
from jobmeter.store.store import Store

_MANY = 100
"""For more jobs, the machine of each job's newest run is not read: only the reason of an advice uses it."""


def advise_jobs(store: Store, names: Sequence[str], policy: Policy, features: Features = NO_FEATURES) -> list[Advice]:
    """Advice for the jobs and workflows named, or for what was run or imported last; see `job_histories`."""
    return advise_histories(store, list(job_histories(store, names)), policy, features)


def advise_histories(
    store: Store, histories: Sequence[History], policy: Policy, features: Features = NO_FEATURES
) -> list[Advice]:
    """Advice for each history. Jobs that are sized together share what is learned of them."""
    predictors = fit_histories(histories, policy, features)
    few = len(histories) <= _MANY
    return [
        predictor.predict(features, _machine_cpus(store, history) if few else None)
        for history, predictor in zip(histories, predictors)
    ]


def fit_histories(histories: Iterable[History], policy: Policy, features: Collection[str] | None) -> list[Predictor]:
    """A predictor for each history. `features` names what is known of the runs to come; None means everything."""
    pools = Pools()
    predictors = [fit(history.name, history.rows, policy, pools) for history in histories]
    pools.settle(policy, features)
    return predictors


def job_histories(store: Store, names: Sequence[str]) -> Iterator[History]:
    """The histories of the jobs and workflows named; without names, of what was run or imported last.

    Raises UsageError if a name is unknown.
    """
    if not names:
        yield from _newest_histories(store)
    for name in names:
        workflow = store.find_workflow(name)
        histories = list(workflow_histories(store, workflow) if workflow else name_histories(store, name))
        if not histories:
            hint = did_you_mean(store.query, name) or "`jobmeter stats` lists the jobs that have."
            raise UsageError(f"no job and no workflow named {name!r} has run. {hint}")
        yield from histories


def _newest_histories(store: Store) -> Iterator[History]:
    newest = next(store.runs(Selection(limit=1)), None)
    if newest is None:
        store.resolve("last")  # raises UsageError: there are no runs
    elif (file := imported_last(store)) is not None:
        yield from source_histories(store, file)
    else:
        workflow = newest.get("workflow")
        yield from workflow_histories(store, workflow) if workflow else name_histories(store, newest["name"])


def _machine_cpus(store: Store, history: History) -> int | None:
    return store.record(history.rows[0]["id"]).get("host", {}).get("cpus")
