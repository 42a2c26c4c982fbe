"""The lines of the display of a workflow run, on a terminal of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from jobmeter.model import Status
from jobmeter.terminal import printable
from jobmeter.units import text
from jobmeter.workflow.progress import JobView, View

_COLOURS = {
    Status.COMPLETED: "green",
    Status.RUNNING: "cyan",
    Status.FAILED: "red",
    "blocked": "red",
    Status.CANCELLED: "yellow",
}
_NAME = 12
"""The least width of a job's name: columns are left out to make room for it."""
_BAR = 10
"""The least width of the bar: a shorter one shows nothing."""
_NEAR = 0.9
"""From this share of what a job requested on, the share is highlighted."""


class _Column(NamedTuple):
    heading: str
    width: int
    gap: int  # before it
    cell: Callable[[JobView], Text]


def screen_lines(name: str, view: View, width: int, height: int) -> list[Text]:
    """The lines to show, cut to `width` columns, and no more of them than fit in `height`."""
    lines = [_title(name, view, width), *_counts(view, width), _course(view, width)]
    # The last line of the terminal is for the cursor, one is for the headings.
    room = height - len(lines) - 2
    if view.running and room > 0:
        fits = len(view.running) <= room
        shown = view.running if fits else view.running[: room - 1]
        columns = _fitting(width, view.running)
        if shown:
            lines.append(_headings(columns, width))
        lines += [_row(job, columns, width) for job in shown]
        if not fits:
            lines.append(Text(f"and {len(view.running) - len(shown):,} more", style="dim"))
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines[: max(height - 1, 1)]


def clock(seconds: float) -> str:
    """Format a time for a display that is redrawn: `0:07`, `12:05`, `3:07:12`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _title(name: str, view: View, width: int) -> Text:
    jobs = f": {view.jobs:,} job{'s' * (view.jobs != 1)}"
    line = Text(printable(name), style="bold")
    line.truncate(max(width - len(jobs), 1), overflow="ellipsis")
    return line.append(jobs, style="not bold")


def _counts(view: View, width: int) -> list[Text]:
    """The number of jobs with each status, on as many lines as needed."""
    lines = [Text()]
    for status, number in view.counts.items():
        part = Text(f"{number:,} {status}", style=_COLOURS.get(status, "") if number else "dim")
        if lines[-1].plain and lines[-1].cell_len + 2 + part.cell_len > width:
            lines.append(Text())
        lines[-1] = lines[-1].append("  " if lines[-1].plain else "").append_text(part)
    return lines


def _course(view: View, width: int) -> Text:
    """A bar if there is room for one, the elapsed time and the time left."""
    times = _times(view)
    room = width - len(times) - 2
    if room < _BAR:
        return Text(times)
    good = _part(view.counts[Status.COMPLETED], view.jobs, room)
    bad = _part(view.settled, view.jobs, room) - good
    line = Text("━" * good, style="green").append("━" * bad, style="red")
    return line.append("━" * (room - good - bad), style="bright_black").append(f"  {times}", style="default")


def _part(count: int, of: int, room: int) -> int:
    return min(room * count // of, room) if of else room


def _times(view: View) -> str:
    if view.stopping:
        return f"{clock(view.seconds)}, ending the jobs; Ctrl-C again: at once"
    left = "" if view.seconds_left is None else f", about {clock(view.seconds_left)} left"
    return f"{clock(view.seconds)}{left}"


def _fitting(width: int, jobs: Sequence[JobView]) -> list[_Column]:
    """The columns that leave room for the names. The least important ones are left out first."""
    wanted = min(max(cell_len(printable(job.name)) for job in jobs), 2 * _NAME)
    there = [column for column in _COLUMNS if any(column.cell(job).plain for job in jobs)]
    if all(job.attempt == 1 for job in jobs):
        there.remove(_ATTEMPT)
    for least in (*_LEAST_FIRST, None):
        room = width - sum(column.gap + column.width for column in there)
        if room >= (wanted if least in _SHARES else min(wanted, _NAME)):
            break
        there = [column for column in there if column is not least]
    return there


def _headings(columns: Sequence[_Column], width: int) -> Text:
    cells = [Text(column.heading) for column in columns]
    line = _line(Text("running"), cells, columns, width)
    line.stylize("dim")
    return line


def _row(job: JobView, columns: Sequence[_Column], width: int) -> Text:
    return _line(Text(printable(job.name)), [column.cell(job) for column in columns], columns, width)


def _line(name: Text, cells: Sequence[Text], columns: Sequence[_Column], width: int) -> Text:
    name.truncate(max(width - sum(column.gap + column.width for column in columns), 1), overflow="ellipsis", pad=True)
    for cell, column in zip(cells, columns):
        name.append(" " * (column.gap + column.width - cell.cell_len)).append_text(cell)
    return name


def _figure(value: float | None, unit: str) -> Text:
    return Text("" if value is None else text(value, unit))


def _share(share: float | None) -> Text:
    if share is None:
        return Text()
    style = "red" if share > 1 else "yellow" if share >= _NEAR else "dim"
    return Text(f"{share:.0%}" if share < 10 else ">999%", style=style)


_ATTEMPT = _Column("try", 3, 2, lambda job: Text(str(job.attempt)))
_TIME = _Column("time", 8, 2, lambda job: Text(clock(job.seconds)))
_CPU = _Column("CPU", 6, 2, lambda job: _figure(job.cpu_percent, "percent"))
_MEMORY = _Column("memory", 8, 2, lambda job: _figure(job.memory_bytes, "bytes"))
# Not red for a job that uses more CPUs than it requested: every second job would be red.
_CPU_SHARE = _Column("share", 5, 1, lambda job: Text(_share(job.cpu_share).plain, style="dim"))
_MEMORY_SHARE = _Column("share", 5, 1, lambda job: _share(job.memory_share))
_TIME_SHARE = _Column("share", 5, 1, lambda job: _share(job.time_share))
_SHARES = (_CPU_SHARE, _TIME_SHARE, _MEMORY_SHARE)
_COLUMNS = (_ATTEMPT, _TIME, _TIME_SHARE, _CPU, _CPU_SHARE, _MEMORY, _MEMORY_SHARE)
_LEAST_FIRST = (_CPU_SHARE, _TIME_SHARE, _ATTEMPT, _MEMORY_SHARE, _CPU, _TIME, _MEMORY)
