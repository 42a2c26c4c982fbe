"""Waits for a worker to start, and has its tasks measured."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jobmeter.api.options import measure_options
from jobmeter.errors import JobmeterError, UsageError, quote
from jobmeter.integrations.celery.requirement import TaskRequirements
from jobmeter.integrations.celery.task_usage import PLACES
from jobmeter.integrations.warnings import Warnings
from jobmeter.store_access import make_store_directory
from jobmeter.suggestion import suggest

if TYPE_CHECKING:
    from celery import Celery

    from jobmeter.integrations.celery.measuring_worker import MeasuringWorker

VARIABLE = "JOBMETER_CELERY"
USAGE_VARIABLE = "JOBMETER_CELERY_USAGE"
_OFF = ("", "0", "no", "off", "false")

_installed: list[Installation] = []
"""The last installation for an application counts. One from the environment is for all applications without one."""


def places(words: Iterable[str]) -> frozenset[str]:
    """The places that usage goes to, as a set. Raises UsageError for a word that is not one of PLACES."""
    words = frozenset([words] if isinstance(words, str) else words)
    for word in words - set(PLACES):
        raise UsageError(f"usage_in: there is no place {quote(word)}. {suggest(word, PLACES)}")
    return words


def install_from_environment() -> None:
    """Install as `JOBMETER_CELERY` says, for whatever application the worker runs."""
    if os.environ.get(VARIABLE, "").lower() in _OFF:
        return
    words = os.environ.get(USAGE_VARIABLE, "").replace(",", " ").split()
    Installation(None, None, frozenset(words)).connect()


def is_installed(app: Any) -> bool:
    """Whether a worker of this application would measure its tasks."""
    return any(each._counts_for(app) for each in _installed)


class Installation:
    """Waits for a worker of its application to start."""

    def __init__(self, app: Celery | None, store: str | None, usage_in: frozenset[str]) -> None:
        self._app = app
        self._store = store
        self._usage_in = usage_in
        self._warnings = Warnings()
        self._worker: MeasuringWorker | None = None

    def connect(self) -> None:
        from celery import signals

        # Children that are started as new programs, and not forked, get only the second of these signals.
        signals.worker_init.connect(self._on_worker_init, weak=False)
        signals.worker_process_init.connect(self._on_process_init, weak=False)
        _installed[:] = [each for each in _installed if each._app is not self._app]
        _installed.append(self)

    def _counts_for(self, app: Any) -> bool:
        mine = [each for each in _installed if each._app is app] or [each for each in _installed if each._app is None]
        return self in mine

    def _on_worker_init(self, sender: Any, **_: Any) -> None:
        """Measure the tasks of a worker that starts. In the program `celery worker`, the log is not set up yet."""
        if not self._counts_for(sender.app):
            return
        with self._warnings.instead_of_failing("tasks are not measured"):
            problems = self._begin(sender.app, sender.pool_cls, sender.hostname)
            _when_logging(sender, functools.partial(self._report, problems))

    def _on_process_init(self, **_: Any) -> None:
        with self._warnings.instead_of_failing("tasks are not measured"):
            if self._worker is not None:
                self._worker.begin_child()
                return
            from celery import current_app

            app = current_app._get_current_object()
            if self._counts_for(app):
                self._begin(app, "prefork", None)

    def _report(self, problems: list[str], **_: Any) -> None:
        for problem in problems:
            self._warnings.warn_once(problem)

    def _begin(self, app: Any, pool: Any, hostname: str | None) -> list[str]:
        """Measure from now on, and return the problems. `hostname` is None in a child that was not forked."""
        from jobmeter.integrations.celery.measuring_worker import MeasuringWorker

        try:
            places(self._usage_in)
            options = measure_options(None, None, None, None, None, self._store, keep=True)
            requirements = TaskRequirements(app.tasks.values())
            self._worker = MeasuringWorker(app, options, requirements, pool, self._usage_in, self._warnings)
            self._worker.begin(hostname)
        except JobmeterError as error:
            return [f"tasks are not measured: {error}"]
        return requirements.problems + _unwritable(options.store)


def _unwritable(store: str | None) -> list[str]:
    try:
        make_store_directory(str(store), "journal")
        if not os.access(f"{store}/journal", os.W_OK):
            return [f"tasks are not measured: {store}/journal: Permission denied. Name another with JOBMETER_STORE."]
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        return [f"tasks are not measured: {why}. Name a directory that can be written with JOBMETER_STORE."]
    return []


def _when_logging(worker: Any, report: Any) -> None:
    from celery import signals
    from celery.apps.worker import Worker as Program

    if isinstance(worker, Program):
        signals.celeryd_after_setup.connect(report, weak=False)
    else:
        report()
