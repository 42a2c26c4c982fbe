"""Converts a run that another tool recorded to a run record of jobmeter.

Its figures keep keys of their own (`duct_…`, `nextflow_…`, `slurm_…`, `gnutime_…`) and carry their descriptions,
so that they are not mistaken for what jobmeter measured itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Union

from jobmeter.analyse.headline_table import usage
from jobmeter.exchange.cells import BadCell
from jobmeter.journal.lines import read_lines, skip_line
from jobmeter.journal.reader import JournalWindow
from jobmeter.model import Across, Kind, Measurement, Outcome, Quality, Requirement
from jobmeter.record.build import complete, identity, run_id
from jobmeter.record.validate import check_described, check_record, problem_of_window

if TYPE_CHECKING:
    from jobmeter.record.types import Described, Host, Labels, Record

FILE_TIME = "the file's time of change"
LONGEST_LINE = 256 << 20
"""Bytes. A longer line is left out; a line of jobmeter's own records may have the time series of weeks."""
TOO_LONG = f"is longer than {LONGEST_LINE >> 20} MiB"

Figures = list[tuple[Measurement, dict[str, float]]]
"""Measurements, each with its known statistics: peak, mean, total."""


class ForeignRun(NamedTuple):
    """One run to store: its record, the descriptions of its measurements, its time series."""

    record: Record
    described: Described
    windows: list[JournalWindow]
    notes: tuple[str, ...] = ()  # on parts that could not be read


class UnusableRow(NamedTuple):
    """A row, or a whole log, that cannot be made into a run."""

    where: str
    why: str


class Unfinished(NamedTuple):
    """A job that has not ended: its figures are still to come."""

    where: str


Item = Union[ForeignRun, UnusableRow, Unfinished]
Items = Iterator[Item]


class Facts(NamedTuple):
    """What another tool recorded of a run; None or empty is "not recorded"."""

    source: str
    identity: tuple[str, ...]  # what distinguishes this run from all others of this source
    where: str  # file and line
    name: str
    outcome: Outcome
    figures: Figures
    command: list[str] = []
    started: float | None = None
    ended: float | None = None
    wall_seconds: float | None = None
    written: float | None = None  # when its file was written: the end of a run that has no time
    requirement: Requirement = Requirement()
    labels: Labels = {}
    host: Host = {}
    user: str | None = None
    directory: str | None = None
    windows: list[JournalWindow] = []
    provenance: dict[str, Any] = {}
    notes: tuple[str, ...] = ()


def run_of(facts: Facts) -> ForeignRun:
    """The run that these facts describe. Raises BadCell if they make no valid record."""
    summary = {
        measurement.key: {"unit": measurement.unit, "kind": measurement.kind.value, **fields}
        for measurement, fields in facts.figures
        if fields
    }
    described = {measurement.key: measurement.described() for measurement, fields in facts.figures if fields}
    provenance = {name: value for name, value in facts.provenance.items() if value is not None}
    if facts.started is None and facts.ended is None:
        facts = facts._replace(ended=facts.written)
        provenance["times_from"] = FILE_TIME
    started, ended = _both_ends(facts)
    begun = identity(
        stable_id(facts.source, *facts.identity),
        name=facts.name,
        command=facts.command,
        requirement=facts.requirement,
        labels={"source": facts.source, **facts.labels},
        directory=facts.directory,
        host=facts.host,
        user=facts.user,
        started=started,
    )
    imported: Any = {"from": facts.source, "where": facts.where, **provenance}
    record = complete(
        begun,
        facts.outcome,
        usage=usage(summary, described, facts.wall_seconds or 0.0),
        measurements=summary,
        processes=[],
        provenance={"selected": list(summary), "imported": imported},
        wall_seconds=facts.wall_seconds,
        ended=ended,
    )
    return valid_run(ForeignRun(record, described, facts.windows, facts.notes))


def valid_run(run: ForeignRun) -> ForeignRun:
    """The same run, validated. Raises BadCell if it cannot be stored."""
    problem = check_record(run.record)
    if problem is None and (problem := check_described(run.described)) is not None:
        problem = f".described{problem}"
    if problem is not None:
        raise BadCell(f"makes no valid record: {problem.lstrip('. ')}")
    kinds = {key: about["kind"] for key, about in run.described.items()}
    for window in run.windows:
        if (problem := problem_of_window(*window, kinds)) is not None:
            raise BadCell(f"has a window that is not valid: {problem.lstrip('. ')}")
    return run


def _both_ends(facts: Facts) -> tuple[float | None, float | None]:
    """When the run started and ended; a missing time is computed from the other one and the wall time."""
    started, ended, wall = facts.started, facts.ended, facts.wall_seconds
    if started is None and ended is not None:
        started = ended - (wall or 0.0)
    if ended is None and started is not None and wall is not None:
        ended = started + wall
    return started, ended


def stable_id(*identity: str) -> str:
    """A run id that is the same whenever and wherever the same run is imported."""
    digest = hashlib.sha256("\0".join(identity).encode(errors="surrogatepass")).digest()
    return run_id(digest[:12])


def gauge(key: str, unit: str, across: Across, help: str, quality: Quality = Quality.SAMPLED) -> Measurement:
    return Measurement(key, unit, Kind.GAUGE, across, quality, help)


def counter(key: str, unit: str, across: Across, help: str, quality: Quality = Quality.SAMPLED) -> Measurement:
    return Measurement(key, unit, Kind.COUNTER, across, quality, help)


def numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Lines with their numbers; None for a line that is too long."""
    for number, line in enumerate(read_lines(file, LONGEST_LINE), start=1):
        is_cut = len(line) == LONGEST_LINE and not line.endswith(b"\n")
        if is_cut:
            skip_line(file)
        yield number, None if is_cut else line


def decoded(file: BinaryIO) -> Iterator[tuple[int, str | None, str]]:
    """Numbers of lines, with their text; for a line that cannot be read, None and the reason."""
    for number, line in numbered_lines(file):
        try:
            if line is None:
                yield number, None, TOO_LONG
                continue
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            yield number, None, "is not UTF-8 text"
        else:
            yield number, text.rstrip("\r\n"), ""
