"""Runs commands of jobmeter in this process and checks what must hold for all of them, whatever the files say."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings

from jobmeter.cli.main import main

CASES = int(os.environ.get("JOBMETER_FUZZ_CASES", "0"))
"""Of each kind, for `make fuzz`; 0 is a short run of cases that are always the same."""
_LONGEST = 60
"""Seconds that one command may take on the busiest machine."""
TRIED: dict[str, int] = {}
_CALLS: list[str] = []


def bounded(cases: int) -> settings:
    """So many cases, the same each time; or as many as were requested, at random."""
    return settings(
        max_examples=CASES or cases,
        derandomize=not CASES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def tried(kind: str, count: int = 1) -> None:
    TRIED[kind] = TRIED.get(kind, 0) + count


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Hang(BaseException):
    """A command took too long."""


def run(*arguments: str) -> Done:
    """`jobmeter ARGUMENTS`. Any exception is a failure of the test: people would see a traceback."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with _stderr() as err:
        with _in_time(arguments), contextlib.redirect_stdout(out):
            try:
                code = main(list(arguments))
            except SystemExit as left:  # argparse, for a wrong option
                code = left.code if isinstance(left.code, int) else 1
            sys.stderr.flush()
        said = err()
    _CALLS.append(arguments[0])
    if len(_CALLS) % 40 == 0:
        gc.unfreeze()  # each command freezes what it finds
        gc.collect()  # commands do not close their index: they end
        gc.freeze()
    printed = out.buffer.getvalue().decode("utf-8", "strict")
    assert code in (0, 1, 2, 125), (arguments, code, said)
    assert "Traceback" not in said, said
    assert code != 125 or said.startswith("jobmeter: "), (arguments, said)
    return Done(code, printed, said)


def parsed(text: str) -> Any:
    """The JSON that a command printed; NaN and Infinity are none."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


@contextlib.contextmanager
def _stderr() -> Iterator[Any]:
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        raw = io.FileIO(os.dup(file.fileno()), "wb")
        stream, sys.stderr = sys.stderr, io.TextIOWrapper(io.BufferedWriter(raw), errors="backslashreplace")
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")
        finally:
            os.dup2(before, 2)
            os.close(before)
            sys.stderr.close()
            sys.stderr = stream


@contextlib.contextmanager
def _in_time(arguments: tuple[str, ...]) -> Iterator[None]:
    def end(*_: object) -> None:
        raise Hang(" ".join(arguments))

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(_LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check_every_command(store: Path, healthy: str) -> None:
    """Run all commands that read a store; the healthy run is always there. The last ones remove all runs."""
    at = ("--store", str(store))
    output = store.parent / "output"
    output.mkdir(exist_ok=True)
    listed = run("ls", "--limit", "0", "--json", *at)
    rows = parsed(listed.out)
    assert healthy in [row["id"] for row in rows], listed
    assert 0 == run("ls", *at).code
    shown = run("show", healthy, "--json", *at)
    assert (0, "completed") == (shown.code, parsed(shown.out)["outcome"]["status"]), shown
    for row in rows:
        shown = run("show", row["id"], *at)
        assert 0 == shown.code, shown
        record = parsed(run("show", row["id"], "--json", *at).out)
        assert row["id"] == record["id"]
        assert 0 == run("label", row["id"], *at).code
    assert 0 == run("stats", *at).code
    parsed(run("stats", "--json", *at).out)
    parsed(run("check", "--all", "--exit-zero", "--json", *at).out)
    run("check", "--exit-zero", *at)
    for row in rows[:3]:
        run("compare", healthy, row["id"], *at)
        run("size", row["name"], *at) if not row["name"].startswith("-") else None
    run("size", "*", "--format", "json", *at)
    for options in ((), ("--windows",), ("--records", "--windows"), ("--format", "jsonl")):
        assert 0 == run("export", *options, *at).code
    run("export", "-o", f"{output}/all.parquet", *at)
    run("export", "--windows", "-o", f"{output}/windows.parquet", *at)
    plotted = run("plot", healthy, "-o", str(output), *at)
    assert 0 == plotted.code, plotted
    run("plot", "--name", "*", "-o", str(output), *at)
    run("plot", "--name", "*", "--clock", "-o", str(output), *at)
    run("workflow", "list", *at)
    assert 0 == run("gc", "--older-than", "1s", "--dry-run", *at).code
    assert 0 == run("label", rows[-1]["id"], "fuzzed=yes", *at).code
    assert 0 == run("gc", "--older-than", "1s", "--keep-summary", *at).code
    assert 0 == run("show", healthy, *at).code
    others = [row["id"] for row in rows if row["id"] != healthy and row["status"] != "running"]
    if others:
        assert 0 == run("rm", "--yes", others[0], *at).code
    assert healthy in [row["id"] for row in parsed(run("ls", "--limit", "0", "--json", *at).out)]
    assert 0 == run("gc", "--older-than", "1s", *at).code
