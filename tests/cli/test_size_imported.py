"""What an import carries for `size`: how tasks ended, attempts, first requests, inputs; traces of other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.listing import Commands

GIB = 2**30
HEADER = "task_id,process,name,status,exit,cpus,time,memory,attempt,start,realtime,peak_rss,rchar"


def trace(folder: Path, *rows: str) -> str:
    path = folder / "trace.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return str(path)


def row(number: int, **fields: Any) -> str:
    """A task of `align`, an hour after the one before it, of 1970."""
    of = {"task": number, "end": "COMPLETED,0", "memory": 4 * GIB, "attempt": 1, "seconds": 600, "used": GIB, **fields}
    start = 3_600_000 * number
    return (
        f"{number},align,align ({of['task']}),{of['end']},1,3600000,{of['memory']},{of['attempt']},{start},"
        f"{of['seconds'] * 1000},{of['used']},{3_000_000 * number}"
    )


def advised(jobmeter: Commands, *arguments: str) -> dict[str, Any]:
    (job,) = json.loads(jobmeter("size", "--json", *arguments).out)["jobs"]
    return dict(job)


@pytest.mark.parametrize(
    ("end", "status"),
    [("FAILED,140", "timeout"), ("FAILED,137", "oom"), ("FAILED,1", "failed"), ("COMPLETED,0", "completed")],
)
def test_the_exit_code_of_a_scheduler_says_which_limit_was_met(
    jobmeter: Commands, tmp_path: Path, end: str, status: str
) -> None:
    jobmeter("import", trace(tmp_path, row(1, end=end)))
    assert status == json.loads(jobmeter("show", "last", "--json").out)["outcome"]["status"]


def test_a_time_limit_that_was_met_is_raised(jobmeter: Commands, tmp_path: Path) -> None:
    met = [row(number, end="FAILED,140", seconds=3600) for number in range(7, 10)]
    jobmeter("import", trace(tmp_path, *(row(number) for number in range(1, 7)), *met))
    assert advised(jobmeter)["runtime_seconds"]["ask"] >= 1.5 * 3600


def test_what_a_task_reads_is_labelled_as_its_bytes_and_sizes_the_next(jobmeter: Commands, tmp_path: Path) -> None:
    jobmeter("import", trace(tmp_path, *(row(number, used=GIB + number * GIB // 20) for number in range(1, 41))))
    assert "120000000" == json.loads(jobmeter("show", "last", "--json").out)["labels"]["bytes"]
    for number in (3, 40):
        memory = advised(jobmeter, "--feature", f"bytes={3_000_000 * number}")["memory_bytes"]
        need = GIB + number * GIB // 20
        assert need <= memory["ask"] <= 1.3 * need
        assert "of bytes" in memory["reason"]


def test_the_request_of_today_is_that_of_a_first_attempt(jobmeter: Commands, tmp_path: Path) -> None:
    """A retry requests twice as much; what it needed counts, and what it requested does not."""
    failed = row(8, task=8, end="FAILED,137", used=3 * GIB)
    retried = row(9, task=8, attempt=2, memory=8 * GIB, used=5 * GIB)
    jobmeter("import", trace(tmp_path, *(row(number) for number in range(1, 8)), failed, retried))
    labels = json.loads(jobmeter("show", "last", "--json").out)["labels"]
    assert ("2", "align (8)") == (labels["attempt"], labels["task"])
    memory = advised(jobmeter)["memory_bytes"]
    assert (4 * GIB, 5 * GIB) == (memory["today"], memory["most"])


def test_stats_counts_the_peak_of_a_trace_as_held(jobmeter: Commands, tmp_path: Path) -> None:
    jobmeter("import", trace(tmp_path, *(row(number, seconds=3600, used=number * GIB) for number in range(1, 4))))
    (job,) = json.loads(jobmeter("stats", "--json").out)["groups"]
    assert pytest.approx(1 + 2 + 3, rel=1e-6) == job["gb_hours"]


def test_since_leaves_out_what_ran_before(jobmeter: Commands, tmp_path: Path) -> None:
    path = trace(tmp_path, *(row(number) for number in range(24, 72)))
    for since, runs in (("1970-01-01", 48), ("1970-01-03T00:00:00Z", 24)):
        done = jobmeter("size", "--evaluate", path, "--since", since, "--json")
        assert (0, runs) == (done.code, json.loads(done.out)["runs"])
    none = jobmeter("size", "--evaluate", path, "--since", "1d")
    assert none.code != 0
    assert "nothing to replay" in none.err


def test_output_of_sacct_is_evaluated(jobmeter: Commands, tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    lines = ["JobID|JobName|State|ExitCode|Start|End|Elapsed|Timelimit|ReqCPUS|ReqMem|NNodes|TotalCPU|MaxRSS"]
    for number in range(1, 31):
        times = f"2026-01-{number:02d}T10:00:00|2026-01-{number:02d}T11:00:00|01:00:00"
        lines.append(f"{number}|train|COMPLETED|0:0|{times}|04:00:00|2|8G|1|01:00:00|")
        lines.append(f"{number}.batch|batch|COMPLETED|0:0|{times}||2||1|01:00:00|{2 * GIB // 1024}K")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    evaluated = json.loads(jobmeter("size", "--evaluate", str(path), "--json").out)
    today, advice = (evaluated["methods"][name] for name in ("today's requests", "advice"))
    assert (30, 1) == (evaluated["runs"], evaluated["jobs"])
    assert pytest.approx(30 * 6.0) == today["gb_hours_wasted"]
    assert pytest.approx(30 * 3.0) == today["hours_wasted"]
    assert pytest.approx(30 * 1.0) == today["core_hours_wasted"]
    assert advice["gb_hours_wasted"] < 0.1 * today["gb_hours_wasted"]
    assert (0, 0) == (advice["failed"], advice["timed_out"])
