from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.live import Place


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """Where jobs run; see `ON_BOTH_ENGINES`."""
    return Place(tmp_path, engine=getattr(request, "param", "local"))
