"""Fixture files, as they were written by the tools themselves, and what is read from them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jobmeter.exchange.detect import FORMATS, recognise
from jobmeter.exchange.foreign import ForeignRun, Item, Unfinished, UnusableRow
from tests.records import check_record

FIXTURES = Path(__file__).parent / "fixtures"


def read(path: Path) -> list[Item]:
    with path.open("rb") as file:
        items = list(FORMATS[recognise(str(path), file)].read(str(path), file))
    for run in runs(items):
        check_record(run.record)
    return items


def written(folder: Path, content: str | bytes, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def runs(items: Iterable[Item]) -> list[ForeignRun]:
    return [item for item in items if isinstance(item, ForeignRun)]


def unusable(items: Iterable[Item]) -> list[str]:
    """Line number and reason of each row that made no run."""
    return [
        f"{item.where.rpartition(': ')[2]}: {item.why}" if ": line " in item.where else item.why
        for item in items
        if isinstance(item, UnusableRow)
    ]


def unfinished(items: Iterable[Item]) -> int:
    return sum(isinstance(item, Unfinished) for item in items)


def named(items: Iterable[Item], name: str) -> Any:
    """The record of the run of this name."""
    return next(run.record for run in runs(items) if run.record["name"] == name)


def figure(record: Any, name: str) -> tuple[Any, str, str] | None:
    """A headline figure: value, source, quality."""
    entry = record["usage"].get(name)
    return None if entry is None else (entry["value"], entry["from"], entry["quality"])
