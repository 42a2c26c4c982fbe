"""The run inside which other runs are made, such as a task of a queue: they get a label with its id."""

from __future__ import annotations

import os
from contextvars import ContextVar, Token

LABEL = "parent_run"
VARIABLE = "JOBMETER_PARENT_RUN"

_ENCLOSING: ContextVar[str] = ContextVar("jobmeter_enclosing_run", default="")


class EnclosingRun:
    """From its creation until `leave`, runs made in this context belong to this run.

    With `for_processes`, so do runs of programs that this process starts: only if it does nothing else at that time.
    """

    def __init__(self, run_id: str, *, for_processes: bool) -> None:
        self._token: Token[str] = _ENCLOSING.set(run_id)
        self._for_processes = for_processes
        self._before = os.environ.get(VARIABLE)
        if for_processes:
            os.environ[VARIABLE] = run_id

    def leave(self) -> None:
        """End it. May be called in another context, where there is nothing to restore."""
        try:
            _ENCLOSING.reset(self._token)
        except ValueError:
            pass
        if self._for_processes:
            if self._before is None:
                os.environ.pop(VARIABLE, None)
            else:
                os.environ[VARIABLE] = self._before


def enclosing_label() -> dict[str, str]:
    """The label for a run that is made here; empty if there is no enclosing run."""
    parent = _ENCLOSING.get() or os.environ.get(VARIABLE)
    return {LABEL: parent} if parent else {}
