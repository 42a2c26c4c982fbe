"""The runner's side of the engine, with a driver that answers as the test sets it: no cluster is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.engines.ray import driver_process
from jobmeter.engines.ray.engine import RayEngine
from tests.engines.running import Running

DRIVER = """
import sys
from multiprocessing.connection import Connection

warnings = iter([["node a is slow", "node b is slow"], ["node b is slow"]])
answers = {"connect": lambda: "head:1", "check": lambda: next(warnings), "nodes": lambda: [], "open": lambda: {}}
connection = Connection(int(sys.argv[1]))
while (message := connection.recv())[0] != "close":
    connection.send(("answer", answers[message[0]]()))
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RayEngine:
    """An engine whose driver warns of two nodes at the first check, and of one at the second."""
    (tmp_path / "driver.py").write_text(DRIVER)
    monkeypatch.setattr(driver_process, "_PROGRAM", str(tmp_path / "driver.py"))
    return RayEngine()


def test_warnings_of_the_last_check_are_shown_once_there_is_someone_to_show_them_to(
    engine: RayEngine, tmp_path: Path
) -> None:
    engine.check()
    engine.check(["docker"])
    running = Running(tmp_path, engine)
    engine.close()
    assert ["node b is slow"] == running.warnings
