"""Mutated specs, configurations and expressions: one clear line, never a traceback."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.commands import bounded, parsed, run, tried
from tests.fuzz.mutations import mutated_bytes, mutated_value
from tests.fuzz.test_journals import HEALTHY, write_healthy
from tests.running import ROOT

pytestmark = pytest.mark.no_records

_SPEC = {
    "name": "pipeline",
    "parameters": {"n": "[1,2]", "x": [1, 2]},
    "files": {"data": "data.csv"},
    "jobs": [
        {"name": "a_{n}", "command": "echo {n}", "parameters": {"n": "1:3"}, "cpus": 1, "memory": "10m"},
        {"name": "b", "command": ["echo", "b"], "depends_on": ["a_1"], "runtime": "1m", "outputs": ["out"]},
    ],
}
_CONFIG = b'interval = 0.5\nwindow = "10s"\nmeasurements = ["proc_*"]\nstore = "store"\norphans = "wait"\n'
_WORDS = [
    "name", "status", "id", "memory_peak_bytes", "cpu_seconds", "wall_seconds", "label.team", "started",
    "no_such_field", "=", "!=", "<", ">", "<=", ">=", "~", "and", "or", "not", "(", ")", "((", '"x"', "'y'", '"',
    "4GiB", "1e999", "10" * 300, "-1", "2h", "today", "null", "NaN",
    "\0", "ä🦆", "\ud800", "%", ";", "--", ",", "in", "like", "\\", " ",
    "2026-01-31",
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz") / "store"
    write_healthy(path)
    return path


@bounded(150)
@given(words=st.lists(st.one_of(st.sampled_from(_WORDS), st.text(max_size=8)), max_size=12))
def test_no_expression_breaks_ls(store: Path, words: list[str]) -> None:
    tried("expressions")
    expression = " ".join(words)
    done = run("ls", f"--where={expression}", "--json", "--store", str(store))
    assert done.code in (0, 2), done
    parsed(done.out) if done.code == 0 else None
    assert HEALTHY in run("ls", "--store", str(store), "--json").out


@bounded(80)
@given(depth=st.integers(0, 900), word=st.sampled_from(["(", "not ", "name = 'x' and ", "name = 'x' or "]))
def test_no_depth_of_an_expression_breaks_ls(store: Path, depth: int, word: str) -> None:
    tried("expressions")
    closing = ")" * depth if word == "(" else ""
    assert run("ls", f"--where={word * depth}name = 'x'{closing}", "--store", str(store)).code in (0, 2)


@bounded(60)
@given(rng=st.randoms(use_true_random=False))
def test_no_configuration_breaks_a_command(store: Path, rng: Random) -> None:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "jobmeter.toml").write_bytes(mutated_bytes(_CONFIG, rng))
        tried("configurations")
        os.chdir(folder)
        try:
            assert run("ls").code in (0, 2, 125)
            assert HEALTHY in run("ls", "--store", str(store), "--json").out
        finally:
            os.chdir(before)


@bounded(80)
@given(rng=st.randoms(use_true_random=False))
def test_no_spec_breaks_its_commands(rng: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, rng.choice(("spec.yaml", "spec.json", "spec.json5", "spec.toml", "spec.kdl")))
        path.write_bytes(_mutated_spec(rng))
        tried("specs")
        at = ("--store", f"{folder}/store")
        for arguments in (
            ("workflow", "run", "--dry-run", "--json", str(path), *at),
            ("workflow", "graph", str(path), *at),
            ("check", "--fix", str(path), "--diff", *at),
            ("size", "--apply", str(path), "--diff", *at),
        ):
            assert run(*arguments).code in (0, 1, 2)


def _mutated_spec(rng: Random) -> bytes:
    choice = rng.randrange(4)
    if choice == 0:
        return mutated_bytes(Path(ROOT, "examples", "workflow", "pipeline.yaml").read_bytes(), rng)
    if choice == 1:
        return mutated_bytes(json.dumps(_SPEC, indent=1).encode(), rng)
    return json.dumps(mutated_value(_SPEC, rng), indent=rng.choice((None, 1))).encode()
