"""Nextflow's task directories: `.command.trace` and the files beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.reading import figure, read, runs, unfinished, unusable, written

TRACE = """nextflow.trace/v2
realtime=30090
%cpu=1812
cpu_model=A Processor @ 1.80GHz
rchar=79901
wchar=427
syscr=276
syscw=22
read_bytes=380928
write_bytes=4096
%mem=71
vmem=728216
rss=581672
peak_vmem=728216
peak_rss=593192
vol_ctxt=1906
inv_ctxt=11615
"""


def task(folder: Path, *, name: str = "### name: 'ALIGN (s1)'", code: str | None = "0", trace: str = TRACE) -> Path:
    """A task directory as Nextflow leaves it; returns its trace."""
    directory = folder / "work" / "ab" / "cdef1234567890abcdef1234567890"
    directory.mkdir(parents=True)
    written(directory, f"#!/bin/bash\n### ---\n{name}\n### ...\n", ".command.run")
    for each in (".command.sh", ".command.log", ".command.begin"):
        written(directory, "", each)
    os.utime(directory / ".command.begin", (1714557600, 1714557600))
    if code is not None:
        written(directory, code, ".exitcode")
        os.utime(directory / ".exitcode", (1714557630.5, 1714557630.5))
    return written(directory, trace, ".command.trace")


def test_percentages_are_in_tenths_and_memory_in_kib(tmp_path: Path) -> None:
    record: Any = runs(read(task(tmp_path)))[0].record
    assert ("ALIGN", "ALIGN (s1)", 30.09) == (record["name"], record["labels"]["task"], record["wall_seconds"])
    assert (593192 << 10, "nextflow_peak_rss", "sampled") == figure(record, "memory_peak_bytes")
    assert (round(1.812 * 30.09, 3), "nextflow_cpu_seconds", "sampled") == figure(record, "cpu_seconds")
    assert (380928, "nextflow_read_bytes", "sampled") == figure(record, "read_bytes")
    assert ("2024-05-01T10:00:00.000Z", "2024-05-01T10:00:30.500Z") == (record["started"], record["ended"])
    assert str(tmp_path / "work" / "ab" / "cdef1234567890abcdef1234567890") == record["cwd"]


def test_the_same_task_in_a_trace_is_the_same_run(tmp_path: Path) -> None:
    header = "task_id\thash\tname\tstatus\trealtime\n"
    listed = runs(read(written(tmp_path, f"{header}1\tab/cdef12\tALIGN (s1)\tCOMPLETED\t30s\n")))[0]
    assert listed.record["id"] == runs(read(task(tmp_path)))[0].record["id"]


def test_older_versions_name_the_task_in_a_comment(tmp_path: Path) -> None:
    assert "SORT" == runs(read(task(tmp_path, name="# NEXTFLOW TASK: SORT (2)")))[0].record["name"]


def test_the_exit_code_says_how_it_ended(tmp_path: Path) -> None:
    outcome = runs(read(task(tmp_path, code="137\n")))[0].record["outcome"]
    assert ("failed", 137) == (outcome["status"], outcome["exit_code"])


def test_without_an_exit_code_it_has_not_ended(tmp_path: Path) -> None:
    assert 1 == unfinished(read(task(tmp_path, code=None)))


@pytest.mark.parametrize(
    ("trace", "code", "why"),
    [
        ("nextflow.trace/v2\n%cpu=many\n", "0", "%cpu 'many' is not a number"),
        ("nextflow.trace/v2\npeak_rss=-1\n", "0", "peak_rss '-1' is not a number from 0 up"),
        ("nextflow.trace/v2\nrealtime=1\n", "well", "exit 'well' is not a number"),
    ],
)
def test_what_cannot_be_true_is_refused(tmp_path: Path, trace: str, code: str, why: str) -> None:
    assert [why] == unusable(read(task(tmp_path, trace=trace, code=code)))
