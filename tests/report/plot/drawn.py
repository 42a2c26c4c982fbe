"""Runs that are ready to be drawn."""

from __future__ import annotations

from typing import Any

from jobmeter.report.plot.series import JobCurves, job_curves
from tests.runs import journal, windows


def job(run_id: str = "aaaa1111", name: str = "train", megabytes: float = 1500.0, **row: Any) -> JobCurves:
    fields = {"id": run_id, "name": name, "started": "2026-01-31T12:00:00.000Z", "status": "completed", **row}
    return job_curves(fields, journal(windows(10, seconds=30.0, megabytes=megabytes)))
