"""What commands print on terminals of 60, 80 and 140 columns and in a pipe, compared whole with files in `golden`.

After a change that is wanted: `WRITE_GOLDEN=1 pytest tests/cli/test_golden.py`, and read the difference.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.cli.golden_store import make_store
from tests.running import ROOT
from tests.waiting import LONG

GOLDEN = Path(__file__).parent / "golden"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_store(tmp_path_factory.mktemp("golden") / "store")


def _words(store: str) -> list[str]:
    return [sys.executable, "-m", "tests.cli.transcript", store]


def _environment() -> dict[str, str]:
    dropped = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    inherited = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**inherited, "TZ": "UTC", "TERM": "xterm", "PYTHONPATH": f"{ROOT}/src", "PYTHONUTF8": "1"}


def on_terminal(store: str, columns: int) -> str:
    """All that is printed on a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        _words(store), cwd=ROOT, env=_environment(), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    printed = b""
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:
            break  # the other side was closed
        if not piece:
            break
        printed += piece
    os.close(master)
    assert 0 == process.wait(LONG)
    return printed.decode().replace("\r\n", "\n")


def in_pipe(store: str) -> str:
    done = subprocess.run(
        _words(store), cwd=ROOT, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONG
    )
    assert 0 == done.returncode
    return done.stdout.decode()


def without_paths(printed: str, store: str) -> str:
    """The text without what differs between runs of this test: where the store is, and what a journal is called."""
    return re.sub(r"-added-\w+\.jsonl", "-added.jsonl", printed.replace(store, "STORE"))


def check_golden(name: str, printed: str) -> None:
    path = GOLDEN / name
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(printed, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == printed


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_on_a_terminal_every_table_fits_and_no_number_is_cut(store: str, columns: int) -> None:
    printed = on_terminal(store, columns)
    assert _COLOUR.search(printed), "a terminal has colours"
    plain = without_paths(_COLOUR.sub("", printed), store)
    check_golden(f"{columns}.txt", plain)
    too_wide = [line for line in plain.split("\n") if len(line) > columns and not line.startswith(("jobmeter: ", "$ "))]
    assert [] == too_wide


def test_in_a_pipe_nothing_is_wrapped_left_out_or_coloured(store: str) -> None:
    printed = in_pipe(store)
    assert "\x1b" not in printed
    assert "no room for" not in printed
    check_golden("pipe.txt", without_paths(printed, store))


def test_every_amount_on_a_narrow_terminal_is_one_that_the_pipe_has() -> None:
    """By the files: what was cut would be an amount that nothing has."""
    amount = re.compile(r"(?<![\w.])[\d.]+ (?:[KMG]iB|B|%|ms|s)(?!\w)")
    whole = set(amount.findall((GOLDEN / "pipe.txt").read_text(encoding="utf-8")))
    for columns in (60, 80, 140):
        shown = set(amount.findall((GOLDEN / f"{columns}.txt").read_text(encoding="utf-8")))
        assert set() == shown - whole, columns
        assert len(shown) > 40
