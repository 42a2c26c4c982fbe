"""Mutated indexes: every command answers from the journals, whatever became of `index.db`."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.commands import bounded, check_every_command, parsed, run, tried
from tests.fuzz.mutations import HOSTILE, encoded
from tests.fuzz.test_journals import HEALTHY, journal_lines, write_healthy

pytestmark = pytest.mark.no_records

_BESIDE = 3


READING = (
    ("ls", "--limit", "0", "--json"), ("ls",), ("show", HEALTHY), ("stats",), ("check", "--all", "--exit-zero"),
    ("size", "*"), ("compare", HEALTHY, "other1"), ("export",), ("export", "--windows"), ("label", "other1", "a=b"),
)  # fmt: skip


@bounded(8)
@given(st.randoms(use_true_random=False))
def test_an_index_of_other_tables_or_of_noise_hides_no_run(rng: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = indexed_store(folder)
        rng.choice((_change_schema, _write_noise))(store / "index.db", rng)
        tried("indexes")
        check_every_command(store, HEALTHY)


@bounded(16)
@given(st.randoms(use_true_random=False))
def test_an_index_with_bytes_or_values_changed_breaks_no_command(rng: Random) -> None:
    """A value that could be true is not noticed; the journals have the truth, and no command changes that."""
    with tempfile.TemporaryDirectory() as folder:
        store = indexed_store(folder)
        mutate(store / "index.db", rng)
        tried("indexes")
        for words in READING:
            run(*words, "--store", str(store))
        for path in store.glob("index.db*"):
            path.unlink()
        assert 1 + _BESIDE == len(parsed(run("ls", "--limit", "0", "--json", "--store", str(store)).out))


def indexed_store(folder: str) -> Path:
    """A store of the healthy run and others, with its index."""
    store = Path(folder, "store")
    write_healthy(store)
    for number in range(_BESIDE):
        lines = b"".join(map(encoded, journal_lines(f"other{number}")))
        (store / "journal" / f"other{number}.jsonl").write_bytes(lines)
    assert HEALTHY in run("ls", "--limit", "0", "--json", "--store", str(store)).out
    return store


def mutate(index: Path, rng: Random) -> None:
    rng.choice((_flip_bytes, _replace_page, _change_value))(index, rng)


def _write_noise(index: Path, rng: Random) -> None:
    size = index.stat().st_size
    index.write_bytes(rng.choice((b"", b"SQLite format 3\0", rng.randbytes(100), rng.randbytes(size), bytes(size))))


def _flip_bytes(index: Path, rng: Random) -> None:
    data = bytearray(index.read_bytes())
    for _ in range(rng.choice((1, 5, 50, 500))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    index.write_bytes(data)


def _replace_page(index: Path, rng: Random) -> None:
    """A page of nothing, of noise, or a copy of another one."""
    data = bytearray(index.read_bytes())
    size = int.from_bytes(data[16:18], "big") or 512
    at, other = (size * rng.randrange(max(len(data) // size, 1)) for _ in range(2))
    data[at : at + size] = rng.choice((bytes(size), rng.randbytes(size), data[other : other + size]))
    index.write_bytes(data)


def _change_value(index: Path, rng: Random) -> None:
    """Another value in a column of some table, in one row or in all."""
    with sqlite3.connect(index) as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        for _ in range(rng.choice((1, 3))):
            table = rng.choice(tables)
            columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
            value: Any = rng.choice([each for each in HOSTILE if isinstance(each, (int, float, str, type(None)))])
            value = value if not isinstance(value, int) or abs(value) < 2**63 else rng.randbytes(8)
            value = value.encode("utf-8", "surrogatepass") if isinstance(value, str) and rng.random() < 0.5 else value
            where = "" if rng.random() < 0.5 else f"where rowid = (select min(rowid) from {table})"
            try:
                database.execute(f"update {table} set {rng.choice(columns)} = ? {where}", (value,))
            except (sqlite3.Error, UnicodeEncodeError):
                continue  # of a key, or no text


def _change_schema(index: Path, rng: Random) -> None:
    with sqlite3.connect(index) as database:
        entries = list(
            database.execute("select type, name from sqlite_master where name not like 'sqlite_%' and sql not null")
        )
        kind, name = rng.choice(entries)
        choice = rng.randrange(4)
        if choice == 0:
            database.execute(f"drop {kind} {name}")
        elif choice == 1:
            for kind, name in sorted(entries, key=lambda entry: entry[0] == "table"):
                database.execute(f"drop {kind} {name}")
            database.execute("create table job_metadata (job_id text, mine integer)")
        elif choice == 2 and kind == "table":
            database.execute(f"alter table {name} rename to {name}_before")
            database.execute(f"create table {name} (other)")
        else:
            database.execute("create table job_notes (text)")
