"""Mutated files of every kind that `import` reads: whatever they hold, the store stays whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmeter.exchange.detect import FORMATS
from tests.exchange.reading import FIXTURES
from tests.fuzz.commands import bounded, check_every_command, run, tried
from tests.fuzz.mutations import HOSTILE, mutated_bytes, mutated_value
from tests.fuzz.test_journals import HEALTHY, write_healthy
from tests.records import check_journals

pytestmark = pytest.mark.no_records

_KINDS = {"duct": "duct", "gnutime": "gnutime", "nextflow": "nextflow", "sacct": "slurm"}


def mutated_table(text: str, rng: Random) -> str:
    """A table, or a report of `name: value` lines, with cells that hold something else."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(lines))
        separator = next((each for each in ("|", "\t", ",", ": ") if each in lines[at]), " ")
        cells = lines[at].split(separator)
        cell = rng.choice(
            [*map(str, HOSTILE), "-1", "1e400", "9" * 30, "1-99:99:99", "0:0", "UNLIMITED", "4Gc", "12 GB"]
        )
        cells[rng.randrange(len(cells))] = cell.encode("utf-8", "replace").decode()
        lines[at] = separator.join(cells)
    return "\n".join(lines)


def mutated_file(path: Path, rng: Random) -> bytes:
    data = path.read_bytes()
    if rng.randrange(3) == 0 or not data:
        return mutated_bytes(data, rng)
    if path.suffix in (".json", ".jsonl"):
        lines = data.decode().splitlines()
        try:
            values = [json.loads(line) for line in lines]
        except ValueError:
            return json.dumps(mutated_value(json.loads(data), rng)).encode()
        at = rng.randrange(len(values))
        values[at] = mutated_value(values[at], rng)
        return "\n".join(map(json.dumps, values)).encode()
    return mutated_table(data.decode(), rng).encode()


@bounded(12)
@given(st.randoms(use_true_random=False))
def test_no_import_breaks_the_store(rng: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, inputs = Path(folder, "store"), Path(folder, "inputs")
        write_healthy(store)
        shutil.copytree(FIXTURES, inputs)
        assert 0 == run("export", "--records", "--windows", "-o", f"{inputs}/records.jsonl", "--store", str(store)).code
        files = sorted(inputs.iterdir())
        for path in rng.sample(files, 8):
            path.write_bytes(mutated_file(path, rng))
            tried("imports")
            kind = next((kind for start, kind in _KINDS.items() if path.name.startswith(start)), "jobmeter")
            named = ("--from", rng.choice((kind, kind, rng.choice([*FORMATS])))) if rng.random() < 0.5 else ()
            before = journals(store)
            done = run("import", str(path), *named, "--store", str(store))
            assert done.code != 125, done
            if done.code == 2:
                assert before == journals(store), "something was stored, although the file was refused"
        check_journals(str(store))
        check_every_command(store, HEALTHY)


def journals(store: Path) -> list[str]:
    return sorted(path.name for path in (store / "journal").iterdir())
