from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.running import Running
from tests.workflow.live import Place, running_in


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """Where jobs run; see `ON_BOTH_ENGINES`."""
    return Place(tmp_path, engine=getattr(request, "param", "local"))


@pytest.fixture
def running(place: Place, tmp_path: Path) -> Iterator[Running]:
    """An engine that is open; at the end nothing may be left of its tasks."""
    made = Running(tmp_path, place.load_engine())
    yield made
    made.engine.cancel(at_once=True)
    made.engine.close()
    assert made.nothing_more()
    assert [] == running_in(tmp_path)
