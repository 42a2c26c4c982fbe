"""When a container ran, by its engine's clock and by ours."""

from __future__ import annotations

import time

import pytest

from jobmeter.launch.container.instance import monotonic_start, running_seconds
from jobmeter.launch.container.runtime import ContainerState


def state(started: float | None, finished: float | None) -> ContainerState:
    return ContainerState("exited", False, 0, 0, False, started, finished)


@pytest.mark.parametrize(
    ("started", "finished", "seconds"),
    [
        (100.0, 102.5, 2.5),
        (100.003, 100.0, 0.0),  # it ended before its engine had noted the start
        (100.0, 40.0, None),  # the clock was set
        (None, 40.0, None),
        (100.0, None, None),
    ],
)
def test_how_long_it_ran_is_what_its_engine_saw(
    started: float | None, finished: float | None, seconds: float | None
) -> None:
    assert seconds == running_seconds(state(started, finished))


def test_it_did_not_start_before_it_was_requested_whatever_the_clock_of_its_engine() -> None:
    requested_at = time.monotonic() - 0.5
    assert requested_at == monotonic_start(state(time.time() - 30, None), requested_at)
    assert requested_at < monotonic_start(state(time.time() - 0.2, None), requested_at) < time.monotonic()
    assert requested_at < monotonic_start(state(time.time() + 30, None), requested_at) <= time.monotonic()
