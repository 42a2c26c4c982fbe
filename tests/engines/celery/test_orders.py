"""Commands to workers while the broker is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobmeter.engines.celery.broker import beacon_exchange, make_app
from jobmeter.engines.celery.engine import CeleryEngine
from jobmeter.engines.contract import LeftTask
from jobmeter.errors import LaunchError
from tests.celery_workers import Redis
from tests.engines.celery.worker_states import worker
from tests.engines.running import Running
from tests.waiting import wait_for

TOKEN = {"worker": "a", "task": "left", "logs": {"stdout": "/dev/null", "stderr": "/dev/null"}}


@pytest.fixture
def redis() -> Iterator[Redis]:
    made = Redis()
    yield made
    made.close()


def heard(redis: Redis, folder: Path) -> CeleryEngine:
    """An engine that has heard of a worker, which has the task of a killed runner. Then the broker went away."""
    engine = CeleryEngine({"broker": redis.url})
    Running(folder, engine)
    with make_app(redis.url).connection_for_write() as connection:
        beacon = worker("a", 1, tasks={"left": [0, False]})._asdict()
        connection.Producer(serializer="json").publish(beacon, exchange=beacon_exchange(), declare=[beacon_exchange()])
    wait_for(lambda: engine._workers.heard_at("a") > 0, "that the engine hears of the worker")
    redis.stop()
    return engine


def test_a_task_that_cannot_be_ended_for_want_of_a_broker_is_an_error_of_one_line(redis: Redis, tmp_path: Path) -> None:
    engine = heard(redis, tmp_path)
    try:
        with pytest.raises(LaunchError, match=f"^{redis.url}: .*Connection refused") as refused:
            engine.recover([LeftTask(1, 1, TOKEN, False)])
    finally:
        engine.close()
    assert 1 == len(str(refused.value).splitlines())


def test_a_task_is_adopted_while_the_broker_is_away_as_its_reports_are_requested_again(
    redis: Redis, tmp_path: Path
) -> None:
    engine = heard(redis, tmp_path)
    try:
        assert {1} == engine.recover([LeftTask(1, 1, TOKEN, True)]).adopted
    finally:
        engine.close()
