"""Stores with runs in them, and what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobmeter.journal.writer import JournalWriter
from jobmeter.store import Selection, Store, open_store
from tests.runs import DESCRIBED, record, windows


def kept(folder: Path, *runs: Any) -> Store:
    """A store in which each run has a file of its own, as `jobmeter run` writes it."""
    for run in runs:
        writer = JournalWriter(str(folder), run["id"])
        header_keys = ("id", "name", "command", "cwd", "labels", "host", "user", "started", "requirement")
        writer.begin({**{key: run[key] for key in header_keys}, "measurements": DESCRIBED})
        for window in windows(3):
            writer.window(window.seconds, window.samples, window.cells, [])
        writer.record(run)
        writer.close()
    return opened(folder)


def opened(folder: Path, warnings: list[str] | None = None) -> Store:
    """The store there; what it warns of is added to `warnings`, or fails the test."""

    def complain(message: str) -> None:
        raise AssertionError(message)

    return open_store(str(folder), complain if warnings is None else warnings.append)


def names(store: Store, **chosen: Any) -> list[str]:
    return [row["name"] for row in store.runs(Selection(**chosen))]


def ids(store: Store, **chosen: Any) -> list[str]:
    return [row["id"] for row in store.runs(Selection(**chosen))]


def five() -> list[Any]:
    """Five runs of three jobs, an hour apart."""
    runs = [
        record("aaa1", "train", wall_seconds=10.0, memory_peak_bytes=5 << 30, cpu_seconds=9.5, labels={"team": "a"}),
        record("aab2", "train", "oom", wall_seconds=20.0, memory_peak_bytes=8 << 30, labels={"team": "b"}),
        record("bbb3", "test", "failed", wall_seconds=3.0, memory_peak_bytes=1 << 20, cpu_seconds=0.0),
        record("ccc4", "test-long", wall_seconds=7200.0, cpu_seconds=100.0, labels={"team": "a", "x y": 'a"b'}),
        record("ddd5", "export", wall_seconds=1.0),
    ]
    for hour, run in enumerate(runs):
        run["started"] = f"2026-01-31T{12 + hour}:00:00.000Z"
    return runs


def answers(store: Store) -> str:
    """All that the store says of its runs, to compare."""
    return json.dumps([list(store.runs()), [store.record(run_id) for run_id in ids(store)]])


def append(path: Path, *lines: bytes, end: bytes = b"\n") -> None:
    with open(path, "ab") as file:
        file.write(b"\n".join(lines) + end)


def journal_of(folder: Path, run_id: str) -> Path:
    return folder / "journal" / f"{run_id}.jsonl"


def header(run_id: str, **more: Any) -> dict[str, Any]:
    return {"id": run_id, "name": "train", "started": "2026-01-31T12:00:00.000Z", "measurements": DESCRIBED, **more}


def one_file(folder: Path, name: str, lines: Sequence[Any]) -> Path:
    """A journal of these lines."""
    path = folder / "journal" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path
