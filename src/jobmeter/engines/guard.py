"""Ends the jobs of a workflow whose runner was killed.

A process of its own that reads from its stdin, line by line, which shepherds came (`+PID`)
and went (`-PID`). The runner's last word is `.`; a stdin that ends without it means that the
runner is gone, and what is left of its jobs is ended.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.launch.ending import Shepherd, end_jobs, shepherd_of


class Guard:
    """The runner's side: `add` a job before it runs, `remove` it when it is over. Any thread may."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # Not in our group: Ctrl-C, or the kill of a whole group, must not end it before us.
            start_new_session=True,
        )

    def add(self, shepherd: int) -> None:
        self._say(f"+{shepherd}\n")

    def remove(self, shepherd: int) -> None:
        self._say(f"-{shepherd}\n")

    def close(self) -> None:
        self._say(".\n")
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it was killed: `resume` ends what is left
            # Shorter than PIPE_BUF, so lines of several threads stay whole.
            os.write(self._process.stdin.fileno(), line.encode())


def watch(lines: Iterable[str]) -> set[Shepherd]:
    """The shepherds that were left when the lines ended; none after the last word."""
    left: dict[int, Shepherd] = {}
    for line in lines:
        if line == ".\n":
            return set()
        pid = int(line[1:])
        left.pop(pid, None)
        if line.startswith("+") and (shepherd := shepherd_of(THIS_MACHINE, pid)) is not None:
            left[pid] = shepherd
    return set(left.values())


if __name__ == "__main__":
    end_jobs(THIS_MACHINE, watch(sys.stdin))
