"""Reads the output of `sacct -P`: jobs with the rows of their steps, in whatever columns were requested.

Slurm measures steps. A job's own row has its state and times; its peak memory is in the rows of its steps (`.batch`,
`.0` and so on). An empty or zero MaxRSS was never sampled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from jobmeter.exchange.cells import MOST_SECONDS, BadCell, amount, clock, count, joules, moment, number
from jobmeter.exchange.foreign import Facts, Figures, Items, Unfinished, UnusableRow, counter, gauge, run_of
from jobmeter.exchange.foreign_table import ForeignRow, TableFormat, read_rows
from jobmeter.exchange.slurm_job import SacctRow, outcome, requirement, state_of, still_runs
from jobmeter.model import Across, Measurement, Quality, Status

SOURCE = "slurm"
KIND = SOURCE
WORDS = "`sacct -P`"
_IDS = ("jobid", "jobidraw")
_LABELS = ("partition", "account", "cluster", "qos")

MAX_RSS = gauge(
    "slurm_max_rss", "bytes", Across.MAX, "Resident memory of the largest task, as Slurm sampled it (MaxRSS)."
)
MAX_VMSIZE = gauge("slurm_max_vmsize", "bytes", Across.MAX, "Address space of the largest task (MaxVMSize).")
CPU = counter("slurm_cpu_seconds", "seconds", Across.SUM, "CPU time of all steps (TotalCPU).")
USER = counter("slurm_user_seconds", "seconds", Across.SUM, "CPU time in user mode of all steps (UserCPU).")
SYSTEM = counter("slurm_system_seconds", "seconds", Across.SUM, "CPU time in the kernel of all steps (SystemCPU).")
DISK_READ = counter("slurm_max_disk_read", "bytes", Across.MAX, "Bytes read by the task that read most (MaxDiskRead).")
DISK_WRITE = counter("slurm_max_disk_write", "bytes", Across.MAX, "Bytes written by the task that wrote most.")
ENERGY = counter("slurm_energy", "joules", Across.MAX, "Energy of the nodes while they worked for the job.")
_PEAKS = {"maxrss": MAX_RSS, "maxvmsize": MAX_VMSIZE}
_TIMES = {"totalcpu": CPU, "usercpu": USER, "systemcpu": SYSTEM}
_LARGEST = {"maxdiskread": DISK_READ, "maxdiskwrite": DISK_WRITE}
MEASUREMENTS: tuple[Measurement, ...] = (*_PEAKS.values(), *_TIMES.values(), *_LARGEST.values(), ENERGY)


class SlurmJob(NamedTuple):
    """The rows of one job: its own, if there is one, and those of its steps."""

    id: str
    line: int
    own: SacctRow
    steps: list[SacctRow]
    follows_unusable: bool  # whether the row above could not be used: it may be the job's own


def header_columns(line: str) -> list[str] | None:
    """The columns that the first line names; None if it is not of `sacct -P`."""
    columns = [column.strip().lower() for column in line.split("|")]
    return columns if set(columns) & set(_IDS) else None


def fits(first_line: str, beginning: str) -> bool:
    return header_columns(first_line) is not None


def read(path: str, file: BinaryIO) -> Items:
    job_ids: set[str] = set()
    written = os.fstat(file.fileno()).st_mtime
    for job in _jobs(path, file):
        if isinstance(job, UnusableRow):
            yield job
            continue
        where = f"{path}: line {job.line}"
        if not job.own and job.id in job_ids:
            yield UnusableRow(where, f"a step of job {job.id} is not next to its job. Sort the rows by job")
            continue
        job_ids.add(job.id)
        if not job.own and job.follows_unusable:
            # A run of the steps alone could get the id that the whole job has once that row is corrected.
            why = "the row above cannot be used, and may be the job's own. Correct that row"
            yield UnusableRow(where, f"job {job.id}: {why}")
            continue
        try:
            if still_runs(state_of(job.own, job.steps)):
                yield Unfinished(where)
            else:
                yield run_of(_facts(where, job, written))
        except BadCell as bad:
            yield UnusableRow(where, f"job {job.id}: {bad}")


_SACCT = TableFormat(
    header_columns,
    lambda line, header: line.split("|"),
    ("", "Unknown", "None", "N/A", "INVALID"),
    "names no column JobID. Make it with `sacct -P`, without --noheader.",
)


def _jobs(path: str, file: BinaryIO) -> Iterator[SlurmJob | UnusableRow]:
    """Rows grouped by job. A row that cannot be used is passed on; the other rows of its job still make a job."""
    job: SlurmJob | None = None
    follows_unusable = False
    for row in _rows_with_id(path, file):
        if isinstance(row, UnusableRow):
            yield row
            follows_unusable = True
            continue
        base, _, step = _job_id(row).partition(".")
        if job is not None and step and base == job.id:
            job.steps.append({**row.cells, "step": step})
        else:
            if job is not None:
                yield job
            own, steps = ({}, [{**row.cells, "step": step}]) if step else (row.cells, [])
            job = SlurmJob(base, row.line, own, steps, follows_unusable)
        follows_unusable = False
    if job is not None:
        yield job


def _rows_with_id(path: str, file: BinaryIO) -> Iterator[ForeignRow | UnusableRow]:
    for row in read_rows(path, file, _SACCT):
        if isinstance(row, ForeignRow) and not _job_id(row).partition(".")[0]:
            yield UnusableRow(row.where, "has no job id")
        else:
            yield row


def _job_id(row: ForeignRow) -> str:
    """The id of a job, or of a step: `7`, `7.batch`. Empty if the row has none."""
    return next((row.cells[column] for column in _IDS if column in row.cells), "")


def _facts(where: str, job: SlurmJob, written: float) -> Facts:
    row = {**(job.steps[0] if job.steps else {}), **job.own}
    started, ended, submitted = (_moment(row, name) for name in ("start", "end", "submit"))
    wall = _wall(row)
    if wall is None and started is not None and ended is not None and ended >= started:
        wall = ended - started
    identity = (row.get("cluster", ""), job.id, *_occasion(row))
    state = state_of(job.own, job.steps)
    ending = outcome(state, job.own, job.steps)
    return Facts(
        source=SOURCE,
        identity=identity,
        where=where,
        name=job.own.get("jobname", job.id),  # not that of a step, which is `batch` for every job
        command=[row["submitline"]] if "submitline" in row else [],
        outcome=ending,
        figures=_figures(job, ended_by_itself=ending.status in (Status.COMPLETED, Status.FAILED)),
        started=started if started is not None or ended is not None else submitted,
        ended=ended,
        wall_seconds=wall,
        written=written,
        requirement=requirement(row),
        labels={"job_id": job.id, **{name: row[name] for name in _LABELS if name in row}},
        host={"name": row["nodelist"]} if row.get("nodelist", "None assigned") != "None assigned" else {},
        user=row.get("user"),
        directory=row.get("workdir"),
        provenance={"state": state} if state else {},
    )


def _occasion(row: SacctRow) -> tuple[str, ...]:
    """The time of the run, to identify it: job ids are reused some day, and a requeued job keeps its id."""
    for name in ("start", "submit", "end"):
        if name in row:
            return (row[name],)
    return tuple(f"{name}={value}" for name, value in sorted(row.items()))


def _moment(row: SacctRow, name: str) -> float | None:
    return moment(row[name], name) if name in row else None


def _wall(row: SacctRow) -> float | None:
    if "elapsedraw" in row:
        return number(row["elapsedraw"], "ElapsedRaw", MOST_SECONDS)
    return clock(row["elapsed"], "Elapsed") if "elapsed" in row else None


def _figures(job: SlurmJob, *, ended_by_itself: bool) -> Figures:
    figures: Figures = []
    # The processes of a killed job were not waited for: Slurm then reports the CPU time of the shell alone.
    trust = Quality.SAMPLED if ended_by_itself else Quality.AT_LEAST
    quality = _quality([step for step in job.steps if step["step"] != "extern"])
    rows = [*job.steps, job.own]
    for name, level in _PEAKS.items():
        if peak := _largest(rows, name):
            figures.append((level._replace(quality=quality), {"peak": peak}))
    for name, time in _TIMES.items():
        # Slurm writes 0 for "unknown": no program runs for 0 µs.
        if seconds := _seconds(job, name):
            figures.append((time._replace(quality=trust), {"total": seconds}))
    for name, most in _LARGEST.items():
        if any(name in row for row in rows):
            figures.append((most._replace(quality=quality), {"total": _largest(rows, name)}))
    for name in ("consumedenergyraw", "consumedenergy"):
        if energy := _largest(rows, name, joules):
            figures.append((ENERGY, {"total": energy}))
            break
    return figures


def _quality(steps: list[SacctRow]) -> Quality:
    """The quality of a maximum over tasks: of several tasks, all together used at least as much as the largest."""
    tasks = sum(count(step.get("ntasks", "1"), "NTasks") for step in steps)
    return Quality.SAMPLED if tasks <= 1 else Quality.AT_LEAST


def _largest(rows: list[SacctRow], name: str, parse: Callable[[str, str], int] = amount) -> int:
    return max((parse(row[name], name) for row in rows if name in row), default=0)


def _seconds(job: SlurmJob, name: str) -> float:
    """The time in the job's own row, which is the sum of its steps; if it is missing, the sum is computed here."""
    if name in job.own:
        return round(clock(job.own[name], name), 6)
    return round(sum(clock(step[name], name) for step in job.steps if name in step), 6)
