"""Makes a record for a run that has none, because it still runs or its writer died."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jobmeter.analyse.headline_table import usage
from jobmeter.analyse.timeline import summarise
from jobmeter.journal.reader import Journal
from jobmeter.model import Outcome, Status
from jobmeter.record.build import complete
from jobmeter.times import parse_moment

if TYPE_CHECKING:
    from jobmeter.record.types import Header, Record

_NOT_IN_RECORDS = ("schema", "measurements", "writer")


def record_so_far(journal: Journal, status: Status) -> Record:
    """A run record made from the windows so far; every total is "at least"."""
    header = journal.header
    described = header.get("measurements", {})
    summary = summarise(((window.seconds, window.cells) for window in journal.windows), described)
    measured_seconds = journal.windows[-1].seconds if journal.windows else 0.0
    begun: Any = {
        "command": [],
        "labels": {},
        "requirement": {},
        **{key: value for key, value in header.items() if key not in _NOT_IN_RECORDS},
    }
    return complete(
        begun,
        Outcome(status),
        usage=usage(summary, described, measured_seconds, complete=False),
        measurements=summary,
        processes=journal.processes[-1][1] if journal.processes else [],
        provenance={
            "selected": list(described),
            "samples": sum(window.samples for window in journal.windows),
            "windows": len(journal.windows),
        },
        wall_seconds=_wall_seconds(header, status, measured_seconds),
    )


def _wall_seconds(header: Header, status: Status, measured_seconds: float) -> float | None:
    """How long a run has been running; of a lost run, how long it was measured. None if that is unknown."""
    if status != Status.RUNNING:
        return measured_seconds if measured_seconds else None
    started = timestamp(header.get("started"))
    return measured_seconds if started is None else round(max(time.time() - started, measured_seconds), 3)


def timestamp(text: object) -> float | None:
    """An ISO 8601 time in seconds since 1970; None if it is not valid."""
    if not isinstance(text, str):
        return None
    try:
        return parse_moment(text).timestamp()
    except ValueError:
        return None
