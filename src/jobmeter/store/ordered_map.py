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
"""Up to this many batches, starting processes takes longer than it saves."""
_AHEAD = 2
"""Batches that a process has at a time: one to work on, and the next."""

Batch = list[tuple[Any, ...]]


class _Worker(NamedTuple):
    batches: Connection
    results: Connection
    process: Any


def map_in_order(function: Callable[[Batch], Any], batches: Iterable[Batch]) -> Iterator[Any]:
    """Yield `function(batch)` for each batch. Batches and results must be plain values, which marshal can write."""
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
        # The workers take turns, so the results come in the order of the batches.
        turns = itertools.cycle(workers)
        pending: deque[_Worker] = deque()
        for batch in batches:
            worker = next(turns)
            if len(pending) == _AHEAD * len(workers):
                yield _result(pending.popleft())
            _send(worker, batch)
            pending.append(worker)
        for worker in workers:
            worker.batches.close()  # no further batch: that ends the worker
        while pending:
            yield _result(pending.popleft())
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
    """A new pipe: its write end and its read end."""
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
    """In the child: send back the result of every batch."""
    begin_child(parent, inherited)
    batch = _next_batch(batches)
    with contextlib.suppress(BrokenPipeError):  # the parent has ended
        while batch is not None:
            result = marshal.dumps(function(marshal.loads(batch)))
            # Before the result is sent: the parent sends the next batch before it reads this result. If the pipes were
            # too small for both, each process would wait for the other one to read.
            batch = _next_batch(batches)
            results.send_bytes(result)


def _next_batch(batches: Connection) -> bytes | None:
    """The next batch, marshalled; None if there are no more, or the parent has ended."""
    try:
        return batches.recv_bytes()
    except EOFError:
        return None
