"""Finds the runs that were imported last."""

from __future__ import annotations

from sqlalchemy import select

from jobmeter.model import OWN_SOURCE
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.store import Store


def imported_last(store: Store) -> int | None:
    """The number of the file with the run that was stored last; None if jobmeter measured that run itself."""
    job = job_metadata.c
    store.update()
    rows = store.query(select(job.source, job.file).order_by(job.number.desc()).limit(1))
    return int(rows[0].file) if rows and rows[0].source != OWN_SOURCE else None
