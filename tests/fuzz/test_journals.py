"""Mutated journals beside a healthy run: no traceback, no hang, and the healthy run is always listed."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.commands import bounded, check_every_command, run, tried
from tests.fuzz.mutations import duplicated_key, encoded, mutated_lines
from tests.runs import DESCRIBED, record, windows

pytestmark = pytest.mark.no_records

HEALTHY = "healthy1"
_BESIDE = 8
"""Mutated journals in one store: opening it costs more than reading them."""


def journal_lines(run_id: str, *, shared: bool = False) -> list[Any]:
    """The lines of a run as `run` writes them, with everything that a journal can have."""
    described = {
        **DESCRIBED,
        "proc_cmd": {"unit": "text", "kind": "label", "across": "last", "quality": "sampled", "help": "Command."},
        "proc_state": {"unit": "text", "kind": "category", "across": "tally", "quality": "sampled", "help": "State."},
    }
    whole: Any = record(
        run_id, wall_seconds=3.0, cpu_seconds=2.5, memory_peak_bytes=100 << 20, processes_peak=1,
        labels={"team": "a"}, requirement={"cpus": 1, "memory_bytes": 1 << 30, "runtime_seconds": 60},
    )  # fmt: skip
    whole["ended"] = "2026-01-31T12:00:03.000Z"
    whole["enforced"] = ["memory"]
    whole["workflow"] = {"id": "w", "name": "W", "run_id": 1, "job_id": 2, "step": "s", "attempt": 1}
    whole["measurements"] = {
        "proc_rss_total": {"unit": "bytes", "kind": "gauge", "peak": 100 << 20, "mean": 5.5, "p95": 7, "min": 1},
        "proc_read_bytes": {"unit": "bytes", "kind": "counter", "total": 12},
        "proc_cmd": {"unit": "text", "kind": "label", "last": "sh", "distinct": ["sh", "true"]},
        "proc_state": {"unit": "text", "kind": "category", "share": {"R": 0.5, "S": 0.5}},
    }
    whole["processes"] = [{"pid": 1, "cmd": "sh", "cpu_seconds": 1.5, "rss_peak_bytes": 4096, "seconds": 3.0}]
    whole["provenance"] = {
        "version": "1", "selected": ["proc_rss_total"], "collectors": {"perf": {"available": False, "why": "no"}},
        "samples": 30, "interval_seconds": 1.0,
    }  # fmt: skip
    header = {name: whole[name] for name in ("id", "name", "command", "cwd", "labels", "host", "user", "started")}
    common = {"measurements": described, "writer": {"pid": 999_999, "start": 1}}
    first = [{"schema": "jobmeter.journal/1", "shared": common}] if shared else []
    cells = windows(3)
    columns = [*cells[0].cells, "proc_cmd", "proc_state"]
    return [
        *first,
        {"schema": "jobmeter.journal/1", **header, "requirement": {}, **({} if shared else common)},
        {"columns": columns},
        *([each.seconds, each.samples, *each.cells.values(), "sh", {"R": 1.0}] for each in cells),
        {"processes": [{"pid": 1, "cmd": "sh", "cpu_seconds": 1.5}]},
        {"record": whole},
        {"labels": {"team": "b", "gone": None}, "run": run_id},
        *([{"run": run_id}, {"removed": "another"}] if shared else []),
    ]


def write_healthy(store: Path) -> None:
    (store / "journal").mkdir(parents=True)
    lines = journal_lines(HEALTHY)
    lines[-2]["record"].pop("workflow")
    (store / "journal" / f"{HEALTHY}.jsonl").write_bytes(b"".join(map(encoded, lines)))


def mutated_journal(number: int, rng: Random) -> bytes:
    # Sometimes with the id of the healthy run: a copy may not hide it.
    run_id = HEALTHY if rng.randrange(12) == 0 else f"bad{number}"
    lines = journal_lines(run_id, shared=rng.random() < 0.3)
    if rng.randrange(4) == 0:
        lines = lines[: rng.randrange(1, len(lines) + 1)]  # its writer was stopped
    data = mutated_lines(lines, rng)
    return duplicated_key(data, rng) if rng.randrange(6) == 0 else data


@bounded(12)
@given(st.randoms(use_true_random=False))
def test_no_journal_hides_another_or_breaks_a_command(rng: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        write_healthy(store)
        for number in range(_BESIDE):
            name = rng.choice((f"bad{number}", f"aa{number}", f"zz{number}"))
            (store / "journal" / f"{name}.jsonl").write_bytes(mutated_journal(number, rng))
        tried("journals", _BESIDE)
        check_every_command(store, HEALTHY)


@bounded(10)
@given(st.randoms(use_true_random=False))
def test_a_journal_that_grows_by_anything_breaks_no_command(rng: Random) -> None:
    """The index continues where it stopped, in the middle of a file."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        write_healthy(store)
        data = mutated_journal(1, rng)
        cut = rng.randrange(len(data) + 1)
        path = store / "journal" / "bad1.jsonl"
        path.write_bytes(data[:cut])
        assert HEALTHY in run("ls", "--limit", "0", "--json", "--store", str(store)).out
        with path.open("ab") as file:
            file.write(data[cut:])
        tried("journals that grow")
        check_every_command(store, HEALTHY)


def test_the_healthy_run_is_healthy(tmp_path: Path) -> None:
    write_healthy(tmp_path / "store")
    done = run("ls", "--json", "--store", str(tmp_path / "store"))
    assert ([HEALTHY], "") == ([row["id"] for row in json.loads(done.out)], done.err)
    check_every_command(tmp_path / "store", HEALTHY)
