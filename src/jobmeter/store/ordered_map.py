"""Applies a function to many batches, in several processes, and yields the results in the order of the batches."""

from __future__ import annotations

import contextlib
import itertools
import marshal
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.errors import StoreError
from jobmeter.store.child_process import begin_child, can_start_children, start_child, widen

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_FEW = 4
"""Batches for which no process is worth its start."""
_AHEAD = 2
"""Batches that a process has at a time: one to work on, and the next."""

Batch = list[tuple[Any, ...]]


class _Worker(NamedTuple):
    batches: Connection
    results: Connection
    process: Any


def map_in_order(function: Callable[[Batch], Any], batches: Iterable[Batch]) -> Iterator[Any]:
    """`function(batch)` of each. Batches and results are plain values, which marshal can write."""
    waiting = iter(batches)
    first = list(itertools.islice(waiting, _FEW + 1))
    if len(first) <= _FEW or not can_start_children():
        yield from map(function, itertools.chain(first, waiting))
        return
    yield from _map_in_processes(function, itertools.chain(first, waiting))


def _map_in_processes(function: Callable[[Batch], Any], batches: Iterator[Batch]) -> Iterator[Any]:
    workers: list[_Worker] = []
    try:
        for _ in range(os.cpu_count() or 1):
            workers.append(_start(function, workers))
        # Each in its turn: so the results come in the order of the batches.
        turns = itertools.cycle(workers)
        asked: deque[_Worker] = deque()
        for batch in batches:
            worker = next(turns)
            if len(asked) == _AHEAD * len(workers):
                yield _result(asked.popleft())
            _send(worker, batch)
            asked.append(worker)
        while asked:
            yield _result(asked.popleft())
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
            worker.batches.close()
            worker.results.close()


def _start(function: Callable[[Batch], Any], others: list[_Worker]) -> _Worker:
    from multiprocessing.connection import Pipe

    batches_here, batches_there = _pipe(Pipe)
    results_there, results_here = _pipe(Pipe)
    widen(results_there)
    inherited = [batches_here, results_here, *(each for other in others for each in (other.batches, other.results))]
    process = start_child(_serve, (inherited, function, batches_there, results_there))
    batches_there.close()
    results_there.close()
    return _Worker(batches_here, results_here, process)


def _pipe(make: Callable[..., Any]) -> tuple[Connection, Connection]:
    """The end that is written, and the end that is read."""
    reader, writer = make(duplex=False)
    return writer, reader


def _send(worker: _Worker, batch: Batch) -> None:
    try:
        worker.batches.send_bytes(marshal.dumps(batch))
    except BrokenPipeError:
        raise _was_killed() from None


def _result(worker: _Worker) -> Any:
    try:
        return marshal.loads(worker.results.recv_bytes())
    except EOFError:
        raise _was_killed() from None


def _was_killed() -> StoreError:
    return StoreError("a process that read journals was killed. Try again.")


def _serve(
    parent: int,
    inherited: list[Connection],
    function: Callable[[Batch], Any],
    batches: Connection,
    results: Connection,
) -> None:
    """In the child: answer every batch."""
    begin_child(parent, inherited)
    with contextlib.suppress(EOFError, BrokenPipeError):  # the parent has ended
        while True:
            results.send_bytes(marshal.dumps(function(marshal.loads(batches.recv_bytes()))))
