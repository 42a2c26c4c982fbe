"""The tables of the index, among them those that people query by hand."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, Table, Text

SCHEMA_VERSION = 5
"""Raise it with every change below, and of how journals are read: an index of an older version is made anew."""

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
    Column("read_to", BigInteger, nullable=False),  # where the first line begins that was not read for good
    Column("lines", Integer, nullable=False),  # how many lines there are before it
    Column("writer", Text, nullable=False),  # who writes to it, as JSON
)

Index("files_open", journal_files.c.is_open)

CLOSED, OPEN, SILENT = 0, 1, 2
"""Nothing more comes; its writer lives; its writer, on another machine, has not been heard of for long."""

job_metadata = Table(
    "job_metadata",
    metadata,
    # Numbers come first: SQLite reads a row only as far as the last column that is asked for.
    Column("number", Integer, primary_key=True),
    Column("job_id", Text, nullable=False),
    Column("job_name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("started", Text),
    Column("ended", Text),
    Column("wall_seconds", Float),
    Column("cpu_seconds", Float),
    Column("cpu_peak_percent", Float),
    Column("cpu_mean_percent", Float),
    Column("memory_peak_bytes", BigInteger),
    Column("memory_mean_bytes", BigInteger),
    Column("read_bytes", BigInteger),
    Column("write_bytes", BigInteger),
    Column("processes_peak", Integer),
    Column("requirement_cpus", Float),
    Column("requirement_memory_bytes", BigInteger),
    Column("requirement_runtime_seconds", Float),
    Column("workflow_run", Integer),
    Column("workflow_id", Text),
    Column("workflow_job", Text),  # a JSON object: which of its jobs, and which attempt
    Column("labels", Text, nullable=False),  # a JSON object
    Column("user", Text),
    Column("host", Text),
    Column("cwd", Text),
    Column("command", Text),  # a JSON array
    Column("cpu_quality", Text),
    Column("memory_quality", Text),
    Column("enforced", Text),  # a JSON array: the limits that the kernel kept it to
    Column("file", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),  # where in the file its header begins
    Column("line", Integer, nullable=False),
)

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

INDEXES = (
    Index("job_by_id", job_metadata.c.job_id, unique=True),
    Index("job_by_start", job_metadata.c.started),
    Index("job_by_name", job_metadata.c.job_name, job_metadata.c.started),
    Index("job_by_status", job_metadata.c.status, job_metadata.c.started),
    # `stats` reads these alone, never the rows: see `jobmeter.store.query.statistics`.
    Index(
        "job_by_wall",
        job_metadata.c.job_name,
        job_metadata.c.wall_seconds,
        job_metadata.c.status,
        job_metadata.c.cpu_seconds,
        job_metadata.c.memory_mean_bytes,
        job_metadata.c.memory_peak_bytes,
        job_metadata.c.requirement_cpus,
    ),
    Index("job_by_cpu", job_metadata.c.job_name, job_metadata.c.cpu_seconds, job_metadata.c.status),
    Index("job_by_memory", job_metadata.c.job_name, job_metadata.c.memory_peak_bytes, job_metadata.c.status),
    Index("job_by_file", job_metadata.c.file),
    # Most runs are of no workflow, and cost nothing here.
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
