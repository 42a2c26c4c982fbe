"""Generators and coroutines measured as blocks: only the time within their steps counts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator

from jobmeter.light_typing import Any
from jobmeter.session.block import Block


def count_steps(block: Block, iterator: Any) -> Generator[Any, Any, Any]:
    """Pass on what a generator or coroutine yields, and count only the time within it."""
    send: Callable[[], Any] = functools.partial(iterator.send, None)
    while True:
        block.counts.clock.enter_step()
        try:
            item = send()
        except StopIteration as stop:
            return stop.value
        finally:
            block.counts.clock.leave_step()
        try:
            send = functools.partial(iterator.send, (yield item))
        except GeneratorExit:
            iterator.close()
            raise
        except BaseException as error:  # noqa: BLE001 - it is for the generator to handle
            send = functools.partial(iterator.throw, error)


class Awaited:
    """Makes the generator that `count_steps` returns awaitable."""

    def __init__(self, steps: Generator[Any, Any, Any]) -> None:
        self._steps = steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._steps
