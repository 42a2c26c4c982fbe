"""What has a meter around it works as before, also where nothing can be measured."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmeter.integrations.ray import measured
from jobmeter.integrations.ray.wrapping import is_wrapped, wrap
from tests.parts import need_module
from tests.waiting import LONG


class Work:
    """Methods of every kind."""

    limit: int = 3

    def __init__(self, start: int) -> None:
        self.start = start

    def add(self, number: int, *, twice: bool = False) -> int:
        """Adds."""
        return self.start + number * (1 + twice)

    async def wait(self) -> int:
        await asyncio.sleep(0)
        return self.start

    def count(self) -> Iterator[int]:
        yield from range(self.start)

    async def stream(self) -> AsyncIterator[int]:
        for number in range(self.start):
            yield number

    def fail(self) -> None:
        raise KeyError("on purpose")

    @staticmethod
    def plain(number: int) -> int:
        return number

    @classmethod
    def made(cls) -> int:
        return cls.limit

    @property
    def doubled(self) -> int:
        return 2 * self.start


async def all_of(stream: AsyncIterator[int]) -> list[int]:
    return [item async for item in stream]


@pytest.fixture(params=["outside of Ray", "without a meter"])
def work(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "without a meter":
        monkeypatch.setitem(sys.modules, "jobmeter.integrations.ray.call_meter", None)
    kind = measured(type("Work", (Work,), {}))
    assert is_wrapped(kind)
    return kind(2)


def test_methods_of_every_kind_do_what_they_did(work: Any) -> None:
    assert (5, 8) == (work.add(3), work.add(3, twice=True))
    assert 2 == asyncio.run(work.wait())
    assert [0, 1] == list(work.count())
    assert [0, 1] == asyncio.run(all_of(work.stream()))
    assert (7, 3, 4) == (work.plain(7), work.made(), work.doubled)
    with pytest.raises(KeyError):
        work.fail()


def test_ray_sees_the_same_signatures_and_kinds_as_before(work: Any) -> None:
    for name in ("add", "wait", "count", "stream"):
        before, after = getattr(Work, name), getattr(type(work), name)
        assert inspect.signature(before) == inspect.signature(after)
        assert before.__doc__ == after.__doc__
        for is_kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
            assert is_kind(before) == is_kind(after)
    assert not is_wrapped(Work)


def test_a_function_gets_one_meter_however_often_it_is_wrapped() -> None:
    once = wrap(all_of, {})
    assert once is wrap(once, {})
    assert once is not all_of


def test_a_function_that_ray_sends_to_a_node_without_jobmeter_runs_there(tmp_path: Path) -> None:
    need_module("ray")
    (tmp_path / "sender.py").write_text(
        "import sys\nfrom ray import cloudpickle\nfrom jobmeter.integrations.ray import measured\n"
        "def work(number): return number + 1\n"
        "sys.stdout.buffer.write(cloudpickle.dumps(measured(work)))\n"
    )
    code = subprocess.run([sys.executable, tmp_path / "sender.py"], stdout=subprocess.PIPE, check=True, timeout=LONG)
    node = "import sys; sys.modules['jobmeter'] = None\nfrom ray import cloudpickle\n"
    node += "print(cloudpickle.loads(sys.stdin.buffer.read())(2))"
    done = subprocess.run(
        [sys.executable, "-c", node], input=code.stdout, capture_output=True, check=False, timeout=LONG
    )
    assert b"3\n" == done.stdout, done.stderr
