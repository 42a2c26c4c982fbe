"""The process that reads a Ray cluster for a monitor. It ends when the monitor does; then Ray ends the samplers.

Messages in both directions are pickles, through one socket. Each request is answered with the result or the error, the
notes so far, and the CPU time of this process and the samplers.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path[0] = __file__.rsplit(os.sep, 3)[0]

from jobmeter.cluster.ray_source import RaySource
from jobmeter.errors import JobmeterError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def serve(connection: Connection) -> None:
    """Answer requests until `close`. Raises EOFError or OSError if the monitor is gone."""
    _, address = connection.recv()
    source = RaySource(address, "", lambda line: None)
    opened = _result(source.open)
    if isinstance(opened, JobmeterError):
        connection.send(("answer", (opened, [], 0.0)))
        return
    value, began = opened, time.process_time()
    while True:
        used = source.cpu_seconds() + time.process_time() - began
        connection.send(("answer", (value, source.notes, used)))
        if connection.recv() == ("close",):
            break
        value = _result(source.read)
    source.close()


def _result(call: Callable[[], Any]) -> Any:
    """What the call returns, or the error that it raises."""
    try:
        return call()
    except JobmeterError as error:
        return error


def main(descriptor: int) -> None:
    from multiprocessing.connection import Connection

    with contextlib.suppress(EOFError, OSError):
        serve(Connection(descriptor))
    os._exit(0)  # at once: what Ray does at the end of a process can take a minute


if __name__ == "__main__":
    main(int(sys.argv[1]))
