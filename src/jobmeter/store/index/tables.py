"""The tables of the index, among them those that people query by hand."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Dialect,
    Float,
    FromClause,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    literal_column,
)

from jobmeter.analyse.headline_table import HEADLINE, HeadlineFigure
from jobmeter.byte_text import as_represented
from jobmeter.model import OWN_SOURCE

SCHEMA_VERSION = 8
"""Raise it when journals are read in another way: an index of an older version is rebuilt. A change of the columns
needs no new version, see `layout`."""


class ByteText(TypeDecorator[str]):
    """Text of a record. A text that it is compared with may have surrogates for bytes, as from the command line."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return as_represented(value) if isinstance(value, str) else value


metadata = MetaData()

index_state = Table(
    "index_state",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

journal_files = Table(
    "journal_files",
    metadata,
    Column("file", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("is_open", Integer, nullable=False),  # CLOSED, OPEN or SILENT
    Column("read_to", BigInteger, nullable=False),  # offset of the first line that must be read again
    Column("lines", Integer, nullable=False),  # how many lines there are before it
    Column("writer", Text, nullable=False),  # the writer's process, as JSON
)

Index("files_open", journal_files.c.is_open)

CLOSED, OPEN, SILENT = 0, 1, 2
"""Complete; its writer runs; its writer, on another machine, has not written for long, or it has no header yet."""


def _figure_column(figure: HeadlineFigure) -> Column[Any]:
    if figure.unit == "bytes":
        return Column(figure.name, BigInteger)
    return Column(figure.name, Integer if figure.is_whole else Float)


job_metadata = Table(
    "job_metadata",
    metadata,
    # Numbers come first: SQLite reads a row only as far as the last column that is selected. `check` compares what was
    # requested with the first figures.
    Column("number", Integer, primary_key=True),
    Column("job_id", ByteText, nullable=False),
    Column("job_name", ByteText, nullable=False),
    Column("status", ByteText, nullable=False),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("started", ByteText),
    Column("ended", ByteText),
    Column("wall_seconds", Float),
    Column("requirement_cpus", Float),
    Column("requirement_memory_bytes", BigInteger),
    Column("requirement_runtime_seconds", Float),
    Column("requirement_gpus", BigInteger),
    *map(_figure_column, HEADLINE),
    Column("source", ByteText, nullable=False),  # the tool that made its figures
    Column("workflow_run", Integer),
    Column("workflow_id", ByteText),
    Column("workflow_job", ByteText),  # a JSON object: which of its jobs, and which attempt
    Column("labels", ByteText, nullable=False),  # a JSON object
    Column("metrics", ByteText),  # a JSON object: the last value of each
    Column("user", ByteText),
    Column("host", ByteText),
    Column("cwd", ByteText),
    Column("command", ByteText),  # a JSON array
    Column("cpu_quality", ByteText),
    Column("memory_quality", ByteText),
    Column("at_least", ByteText),  # a JSON array: the headline figures that may have been higher
    Column("enforced", ByteText),  # a JSON array: the limits that the kernel enforced
    Column("file", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),  # where in the file its header begins
    Column("line", Integer, nullable=False),
)


def is_foreign(jobs: FromClause) -> ColumnElement[bool]:
    """Whether another tool measured a run. Without parameters, so that SQLite sees that its partial index applies."""
    return jobs.c.source != literal_column(f"'{OWN_SOURCE}'")


window_samples = Table(
    "window_samples",
    metadata,
    Column("number", Integer, primary_key=True),  # of the run in job_metadata
    Column("window", Integer, primary_key=True),  # its windows are counted from 0
    Column("seconds", Float, nullable=False),  # since its start
    Column("cpu_percent", Float),
    Column("memory_bytes", BigInteger),
    Column("num_processes", Integer),
    sqlite_with_rowid=False,
)

_SPREAD = tuple(figure.name for figure in HEADLINE if figure.in_stats)
_SUMMED = ("cpu_seconds", "memory_mean_bytes", "energy_joules", "gpu_seconds")
"""Further figures that `stats` sums, for hours of cores, memory and GPUs, and for energy."""

INDEXES = (
    Index("job_by_id", job_metadata.c.job_id, unique=True),
    Index("job_by_start", job_metadata.c.started),
    Index("job_by_name", job_metadata.c.job_name, job_metadata.c.started),
    Index("job_by_status", job_metadata.c.status, job_metadata.c.started),
    # `stats` reads only these indexes, never the rows: see `jobmeter.store.query.statistics`.
    Index(
        "job_by_wall",
        job_metadata.c.job_name,
        job_metadata.c.wall_seconds,
        job_metadata.c.status,
        *(job_metadata.c[name] for name in dict.fromkeys((*_SUMMED, *_SPREAD))),
        job_metadata.c.requirement_cpus,
    ),
    *(
        Index(f"job_by_{name}", job_metadata.c.job_name, job_metadata.c[name], job_metadata.c.status)
        for name in _SPREAD
    ),
    Index("job_by_file", job_metadata.c.file),
    # Partial indexes: most runs are neither imported nor of a workflow, and take no space here.
    Index("job_by_source", job_metadata.c.source, job_metadata.c.job_name, sqlite_where=is_foreign(job_metadata)),
    Index(
        "job_by_workflow",
        job_metadata.c.workflow_id,
        job_metadata.c.workflow_run,
        sqlite_where=job_metadata.c.workflow_id.is_not(None),
    ),
)

SAMPLES_VIEW = """
CREATE VIEW IF NOT EXISTS job_resource_samples AS
SELECT job_id, job_name,
       strftime('%Y-%m-%dT%H:%M:%fZ', julianday(started) + seconds / 86400.0) AS timestamp,
       window_samples.cpu_percent, memory_bytes, num_processes
FROM window_samples JOIN job_metadata USING (number)
"""


def layout() -> str:
    """A checksum of the tables, their columns and their indexes: an index with another layout is rebuilt."""
    tables = [(table.name, [f"{column.name} {column.type!r}" for column in table.columns]) for table in _TABLES]
    indexes = [(index.name, [column.name for column in index.columns]) for index in INDEXES]
    return f"{crc32(repr((tables, indexes, SAMPLES_VIEW)).encode()):08x}"


_TABLES = (index_state, journal_files, job_metadata, window_samples)
