"""Attempts with figures that are known."""

from __future__ import annotations

from typing import Any

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.model import Outcome, Status
from jobmeter.workflow.attempts import Attempt


def an_attempt(number: int, status: str = "completed", *, attempt: int = 1, second: int = 0, **more: Any) -> Attempt:
    """An attempt at job `number` that started so many seconds after noon."""
    outcomes = {"completed": Outcome(Status.COMPLETED, 0), "failed": Outcome(Status.FAILED, 1)}
    about: dict[str, Any] = {
        "number": number,
        "name": f"job{number}",
        "step": f"job{number}",
        "attempt": attempt,
        "run": f"run-{number}-{attempt}",
        "outcome": outcomes.get(status) or Outcome(Status(status)),
        "started": f"2026-01-31T12:00:{second:02}.000Z",
    }
    unknown = dict.fromkeys(name for name in Attempt._fields if name not in about)
    figures = tuple(more.pop(figure.name, None) for figure in HEADLINE)
    return Attempt(**{**about, **unknown, "figures": figures, **more})
