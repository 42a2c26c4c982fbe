"""The stored runs, for Python programs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jobmeter.api.options import warn
from jobmeter.api.results import Run, stored_windows
from jobmeter.errors import UsageError, quote
from jobmeter.model import Status
from jobmeter.moments import moment
from jobmeter.settings import resolve

if TYPE_CHECKING:
    from jobmeter.analyse.compare import Difference
    from jobmeter.analyse.size.advice import Advice
    from jobmeter.analyse.statistics import GroupStatistics
    from jobmeter.record.types import Record
    from jobmeter.store import Selection, Store


def open_store(path: str | os.PathLike[str] | None = None) -> RunStore:
    """The stored runs in this directory; without one, where runs are stored by default.

    StoreError when it cannot be read. Lines of journals that cannot be read are Python warnings.
    """
    from jobmeter.store import open_store as open_index

    return RunStore(open_index(resolve("store", None if path is None else os.fspath(path), warn), warn))


class RunStore:
    """The runs of one store. Each question finds those that were stored until then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.close_when_unused()

    @property
    def path(self) -> str:
        return self._store.location

    def runs(
        self,
        *,
        where: str | None = None,
        name: str | None = None,
        status: str | None = None,
        labels: Mapping[str, str] | None = None,
        since: str | float | None = None,
        until: str | float | None = None,
        limit: int | None = None,
    ) -> Iterator[Run]:
        """The runs selected, newest first, each read when it is reached.

        `where` is an expression as of `jobmeter ls`, as `memory_peak_bytes > 4GiB and status = "oom"`. `name` may be a
        glob. `since` and `until` are seconds since 1970 or a text, as `2h` (ago), `yesterday` or `2026-01-31`.
        UsageError for what is not valid.
        """
        selected = _selection(where, name, status, labels, since, until, limit)
        self._store.update()
        for row in self._store.runs(selected):
            yield self._run(row["id"])

    def run(self, name: str = "last") -> Run:
        """One run by id, unique prefix, name (its newest) or `last`. UsageError when there is none."""
        self._store.update()
        return self._run(self._store.resolve(name))

    def __len__(self) -> int:
        """How many runs are stored."""
        from sqlalchemy import func, select

        from jobmeter.store.index.tables import job_metadata

        self._store.update()
        return int(self._store.query(select(func.count()).select_from(job_metadata))[0][0])

    def stats(
        self,
        *,
        by: str | None = None,
        where: str | None = None,
        name: str | None = None,
        since: str | float | None = None,
    ) -> list[GroupStatistics]:
        """What the runs of each name, or of each value of the label `by`, have in common; most runs first."""
        from jobmeter.store.query.statistics import statistics

        self._store.update()
        return statistics(self._store, _selection(where, name, None, None, since, None, None), by)

    def compare(self, a: str, b: str, *, threshold: float = 0.05) -> list[Difference]:
        """What `b` used compared with `a`, for each figure that both have; a change below `threshold` is small.

        Each is a run, several with commas between, or a group: `name=GLOB`, `label.KEY=VALUE`.
        """
        from jobmeter.analyse.compare import compare
        from jobmeter.store.query.groups import runs_of

        self._store.update()
        return compare(runs_of(self._store, a, warn), runs_of(self._store, b, warn), threshold)

    def size(
        self,
        *names: str,
        features: Mapping[str, float] | None = None,
        target: float = 0.98,
        failure_cost: float = 1.0,
        below_peak: bool = False,
    ) -> list[Advice]:
        """What to request next time for the jobs or workflows named; without names, for that of the newest run.

        `features` is what is known of the next run, as `{"bytes": 3e9}`. `target` is the share of runs that must not
        fail because it is too small, `failure_cost` what a failure costs beside what it wasted, in mean runs;
        `below_peak` allows a time limit below the longest run.
        """
        from jobmeter.analyse.size.policy import Policy
        from jobmeter.store.query.advice import advise_jobs

        if not 0 < target < 1:
            raise UsageError(f"target: {quote(target)} is not a share between 0 and 1, for example 0.98")
        if not 0 <= failure_cost < float("inf"):
            raise UsageError(f"failure_cost: {quote(failure_cost)} is not a number of runs, 0 or more")
        self._store.update()
        return advise_jobs(self._store, names, Policy(target, failure_cost, below_peak), features or {})

    def add(self, record: Record | Run) -> Run:
        """Store a run that was measured elsewhere. UsageError when it is not valid, or stored already."""
        return self._run(self._store.add(record.record if isinstance(record, Run) else record))

    def _run(self, run_id: str) -> Run:
        return Run(self._store.record(run_id), stored_windows(self._store.path(run_id), run_id))

    def __repr__(self) -> str:
        return f"<RunStore {self.path}>"


def _selection(
    where: str | None,
    name: str | None,
    status: str | None,
    labels: Mapping[str, str] | None,
    since: str | float | None,
    until: str | float | None,
    limit: int | None,
) -> Selection:
    from jobmeter.store import Selection

    if status is not None and status not in tuple(Status):
        raise UsageError(f"status: {quote(status)} is not one of {', '.join(Status)}")
    chosen: dict[str, Any] = {"names": [name] if name is not None else [], "labels": dict(labels or {})}
    return Selection(
        **chosen,
        statuses=[status] if status is not None else [],
        since=moment(since) if isinstance(since, str) else since,
        until=moment(until) if isinstance(until, str) else until,
        where=where,
        limit=limit,
    )
