"""The number of the next attempt at each job, and how many of its attempts belong to this runner."""

from __future__ import annotations

from collections.abc import Iterable


class AttemptNumbers:
    """Counts the attempts at each job, by the job's number."""

    def __init__(self, before: Iterable[tuple[int, int]] = ()) -> None:
        """`before` are the attempts of earlier runners, as (job, attempt)."""
        self._last: dict[int, int] = {}
        for job, attempt in before:
            self._last[job] = max(attempt, self._last.get(job, 0))
        self._before = dict(self._last)

    def begin(self, job: int) -> int:
        """Count an attempt that begins now, and return its number."""
        self._last[job] = self._last.get(job, 0) + 1
        return self._last[job]

    def adopt(self, job: int, attempt: int) -> None:
        """Count an attempt of an earlier runner, which still runs, as an attempt of this runner."""
        self._last[job] = attempt
        self._before[job] = attempt - 1

    def own(self, job: int, attempt: int) -> int:
        """How many attempts at the job, up to and including `attempt`, belong to this runner."""
        return attempt - self._before.get(job, 0)
