"""Measures the tasks of a Celery worker: each is a run in the store.

from jobmeter.integrations.celery import install

install(app)

Without a change of code, `JOBMETER_CELERY=1` in the environment of `celery worker` does the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery import Celery

__all__ = ["install"]


def install(app: Celery, *, store: str | os.PathLike[str] | None = None, usage_in: Iterable[str] = ()) -> None:
    """Measure the tasks of this application, in every worker that runs it. Elsewhere it does nothing.

    `usage_in` is where the usage of a task goes in addition to the store: "result" (the meta of its result), "events"
    (the worker's events). Raises UsageError for any other word. Other problems are reported when a worker starts.
    """
    from jobmeter.integrations.celery.installation import Installation, places

    Installation(app, None if store is None else os.fspath(store), places(usage_in)).connect()
