"""The table of a workflow's jobs: what each requested and used, to be sorted and searched; over-use is marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from jobmeter.report.graph.drawing import LOOKS
from jobmeter.report.workflow.job_entry import JobEntry, ResourceUsage
from jobmeter.units import text

_SHOWN = 50
"""Rows at first; a button shows the rest (`workflow.js`)."""
_HEADINGS = (
    ("number", "#"),
    ("text", "job"),
    ("text", "status"),
    ("number", "attempts"),
    ("number", "time"),
    ("number", "CPU"),
    ("number", "memory"),
)


def table_html(jobs: Sequence[JobEntry], with_curves: Collection[str]) -> str:
    """One row per job. `with_curves` are the ids of the runs that have curves."""
    head = "".join(
        f'<th{" class=words" if kind == "text" else ""}><button data-sort="{kind}">{name}</button></th>'
        for kind, name in _HEADINGS
    )
    body = "".join(_row(job, with_curves, number >= _SHOWN) for number, job in enumerate(jobs))
    return (
        '<p class="search"><input id="search" type="search" placeholder="part of a name, or a status" '
        'aria-label="show only jobs with this in their name or status"> '
        '<label><input id="over" type="checkbox"> used more than requested</label> <output id="shown"></output></p>'
        f'<table class="cards jobs"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        '<button id="more" class="hidden"></button>'
    )


def _row(job: JobEntry, with_curves: Collection[str], hidden: bool) -> str:
    look = LOOKS.get(job.status, "bad")
    over = any(usage.over for usage in (job.cpu, job.memory, job.runtime))
    runs = " ".join(attempt.run for attempt in job.attempts if attempt.run in with_curves)
    seconds = sum(attempt.seconds for attempt in job.attempts)
    critical = ' <span class="path" title="on the critical path">●</span>' if job.critical else ""
    curves = " · curves" if runs else ""
    classes = " ".join(filter(None, ("job", "over" if over else "", "hidden" if hidden else "")))
    return (
        f'<tr id="job-{job.number}" class="{classes}">'
        f'<td data-value="{job.number}" data-label="job">{job.number}</td>'
        f'<td class="words" data-value="{escape(job.name)}"><button class="open" title="{escape(job.name)}{curves}">'
        f"{escape(_shortened(job.name))}</button>{critical}</td>"
        f'<td class="words {look}" data-value="{escape(job.status)}">{escape(job.status)}</td>'
        f'<td data-value="{len(job.attempts)}" data-label="attempts">{len(job.attempts)}</td>'
        f"{_cell(job.runtime, 'time', seconds)}{_cell(job.cpu, 'CPU', job.cpu.used)}"
        f"{_cell(job.memory, 'memory', job.memory.used)}</tr>"
    )


def _cell(usage: ResourceUsage, label: str, value: float | None) -> str:
    """A cell: what was used of what was requested, with a bar; marked if more was used than requested."""
    if usage.used is None and usage.requested is None:
        return '<td data-value=""></td>'
    used = "–" if usage.used is None else ("≥ " if usage.at_least else "") + text(usage.used, usage.unit)
    requested = "" if usage.requested is None else f' <span class="of">of {text(usage.requested, usage.unit)}</span>'
    mark = f'<span class="mark" title="{escape(usage.over)}">▲</span> ' if usage.over else ""
    words = [f"used {used}" if usage.used is not None else "not measured"]
    words += [f"mean {text(usage.mean, usage.unit)}"] if usage.mean is not None else []
    words += [f"requested {text(usage.requested, usage.unit)}"] if usage.requested is not None else []
    bar = ""
    if usage.requested and usage.used is not None:
        share = usage.used / usage.requested
        mean = f'<i class="mean" style="width:{min(100 * (usage.mean or 0) / usage.requested, 100):.1f}%"></i>'
        bar = f'<div class="share">{mean}<i style="width:{min(100 * share, 100):.1f}%"></i></div>'
        words.append(f"{share:.0%} of the request")
    return (
        f'<td class="usage{" over" if usage.over else ""}" data-value="{"" if value is None else round(value, 3)}" '
        f'data-label="{label}" title="{escape(", ".join(words))}">{mark}{used}{requested}{bar}</td>'
    )


def _shortened(name: str, most: int = 44) -> str:
    """The name, shortened in the middle: the jobs of a sweep differ at the end."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2 - 1) :]}"
