"""A worker whose tasks are measured, and the store that it measures into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.celery_workers import shared_redis
from tests.integrations.celery.place import TaskPlace


@pytest.fixture
def place(tmp_path: Path) -> Iterator[TaskPlace]:
    made = TaskPlace(tmp_path, shared_redis().url)
    yield made
    made.close()
