"""The timeline of a workflow (a Gantt chart): when each job ran, and the chain that took longest."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from jobmeter.report.graph.drawing import LOOKS
from jobmeter.report.workflow.job_entry import AttemptEntry, JobEntry
from jobmeter.units import scale, text

_MOST_ROWS = 40
"""Up to this many jobs have a row each, with their name; more jobs share rows, as many as ran at one time."""
_TICKS = 6


class Bar(NamedTuple):
    job: JobEntry
    attempt: AttemptEntry

    @property
    def end(self) -> float:
        return self.attempt.begin + self.attempt.seconds


def timeline_html(jobs: Sequence[JobEntry], seconds: float) -> str:
    """The timeline: rows of bars above one another, on the scale of time."""
    bars = sorted((Bar(job, attempt) for job in jobs for attempt in job.attempts), key=lambda bar: bar.attempt.begin)
    if not bars:
        return "<p>No job was run.</p>"
    by_job: dict[int, list[Bar]] = {}
    for bar in bars:
        by_job.setdefault(bar.job.number, []).append(bar)
    named = len(by_job) <= _MOST_ROWS
    rows = list(by_job.values()) if named else lanes(bars)
    span = seconds or 1.0
    body = "".join(_row(row, span, row[0].job.name if named else "") for row in rows)
    shape = "named" if named else "packed"
    return (
        f'<div class="timeline {shape}"><div class="inner">{_axis(span, named)}'
        f'<div class="rows">{body}</div></div></div>'
    )


def lanes(bars: Sequence[Bar]) -> list[list[Bar]]:
    """The bars in as few rows as possible so that none overlap; the bars must be sorted by their begin."""
    rows: list[list[Bar]] = []
    free: list[tuple[float, int]] = []  # when each row is free again, and its number
    for bar in bars:
        if free and free[0][0] <= bar.attempt.begin:
            _, number = heapq.heappop(free)
        else:
            number = len(rows)
            rows.append([])
        rows[number].append(bar)
        heapq.heappush(free, (bar.end, number))
    return rows


def _row(bars: Sequence[Bar], span: float, name: str) -> str:
    who = f'<span class="who" title="{escape(name)}">{escape(name)}</span>' if name else ""
    return f'<div class="row">{who}<div class="lane">{"".join(_bar(bar, span) for bar in bars)}</div></div>'


def _bar(bar: Bar, span: float) -> str:
    job, attempt = bar
    look = LOOKS.get(attempt.status, "bad") + (" critical" if job.critical else "")
    left, width = 100 * attempt.begin / span, 100 * attempt.seconds / span
    again = f", attempt {attempt.attempt}" if len(job.attempts) > 1 else ""
    words = (
        f"{job.number}  {job.name}{again}\n{attempt.ending}\n"
        f"{text(attempt.seconds, 'seconds')}, from {text(attempt.begin, 'seconds')} on"
        + ("\non the critical path" if job.critical else "")
    )
    place = f"left:{left:.3f}%;width:{width:.3f}%"
    return f'<a class="{look}" href="#job-{job.number}" style="{place}" title="{escape(words)}"></a>'


def _axis(span: float, named: bool) -> str:
    by, symbol = scale(span, "seconds")
    step = _nice(span / by / _TICKS)
    marks = []
    at = 0.0
    while at <= span / by * 1.0001:
        marks.append(f'<i style="left:{100 * at * by / span:.3f}%"><b>{at:g} {symbol}</b></i>')
        at = round(at + step, 9)
    who = '<span class="who"></span>' if named else ""
    return f'<div class="row axis">{who}<div class="lane">{"".join(marks)}</div></div>'


def _nice(step: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, 50 … (and 0.5, 0.2, 0.1 …) that is not below `step`."""
    power = 1.0
    while power > step:
        power /= 10
    while power * 10 <= step:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * 0.9999)
