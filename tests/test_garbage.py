"""Work without the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from jobmeter.garbage import no_collection


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_the_collector_is_off_within_and_on_after() -> None:
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_is_on_after_a_failure() -> None:
    with pytest.raises(KeyError), no_collection():
        raise KeyError
    assert gc.isenabled()


def test_the_collector_stays_off_where_it_was_off() -> None:
    with no_collection():
        with no_collection():
            pass
        assert not gc.isenabled()
