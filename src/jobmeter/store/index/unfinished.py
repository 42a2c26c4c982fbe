"""The record of a run that has none: it still runs, or its writer died."""

from __future__ import annotations

import time
from datetime import datetime

from jobmeter.analyse.headline_table import usage
from jobmeter.analyse.timeline import summarise
from jobmeter.journal.reader import Journal
from jobmeter.model import Record

_SCHEMA = "jobmeter.run/1"
_NOT_IN_RECORDS = ("schema", "measurements", "writer")


def record_so_far(journal: Journal, status: str) -> Record:
    """What the windows tell, in the form of a run record; every total is "at least"."""
    header = journal.header
    described = header.get("measurements", {})
    summary = summarise(((window.seconds, window.cells) for window in journal.windows), described)
    seen = journal.windows[-1].seconds if journal.windows else 0.0
    record: Record = {
        "schema": _SCHEMA,
        "labels": {},
        "requirement": {},
        **{key: value for key, value in header.items() if key not in _NOT_IN_RECORDS},
        "outcome": {"status": status, "exit_code": None, "signal": None},
        "usage": usage(summary, described, seen, complete=False),
        "measurements": summary,
        "processes": journal.processes[-1][1] if journal.processes else [],
        "provenance": {
            "selected": list(described),
            "samples": sum(window.samples for window in journal.windows),
            "windows": len(journal.windows),
        },
    }
    wall = _wall_seconds(header, status, seen)
    if wall is not None:
        record["wall_seconds"] = wall
    return record


def _wall_seconds(header: Record, status: str, seen: float) -> float | None:
    """How long it runs; of a lost run how long it was seen to."""
    if status != "running":
        return seen if seen else None
    started = timestamp(header.get("started"))
    return seen if started is None else round(max(time.time() - started, seen), 3)


def timestamp(text: object) -> float | None:
    """Seconds since 1970 of an ISO-8601 time; None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
