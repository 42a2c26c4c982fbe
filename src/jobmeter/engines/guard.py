"""Ends the jobs of a workflow whose runner was killed.

A process of its own that reads from its stdin, line by line, which jobs came (`+SHEPHERD MAIN GROUP`:
two pids, and the directory of its cgroup if it has one) and went (`-SHEPHERD`), and that there are
containers (`c`). The runner's last word is `.`; a stdin that ends without it means that the runner is
gone, and what is left of its jobs is ended.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import Identity
from jobmeter.launch.leftover_jobs import LeftJob, end_jobs, identity_of

DETACH = "--detach"


class Guard:
    """The runner's side: `add` a job before it runs, `remove` it when it is over. Any thread may."""

    def __init__(self, *, detached: bool = False) -> None:
        """`detached`: it is no child of this process, whose children others may kill when it ends, as Ray does."""
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, *([DETACH] if detached else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # Not in our group: Ctrl-C, or the kill of a whole group, must not end it before us.
            start_new_session=True,
        )
        if detached:
            self._process.wait()  # the guard is a child of that one

    def add(self, shepherd: int, main: int, group: str | None = None) -> None:
        self._say(f"+{shepherd} {main} {group or ''}\n")

    def remove(self, shepherd: int) -> None:
        self._say(f"-{shepherd}\n")

    def mind_containers(self) -> None:
        """Some jobs run in containers, which are no children of ours."""
        self._say("c\n")

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


class Left(NamedTuple):
    """What a runner left behind."""

    jobs: set[LeftJob]
    containers: bool  # there may be some


def watch(lines: Iterable[str]) -> Left:
    """What was left when the lines ended; nothing after the last word."""
    left: dict[int, LeftJob] = {}
    containers = False
    for line in lines:
        if line == ".\n":
            return Left(set(), False)
        if line == "c\n":
            containers = True
            continue
        words = line[1:].rstrip("\n").split(" ", 2)
        left.pop(int(words[0]), None)
        if line.startswith("+"):
            left[int(words[0])] = _job(int(words[0]), int(words[1]), words[2])
    return Left(set(left.values()), containers)


def _job(shepherd: int, main: int, group: str) -> LeftJob:
    # A shepherd that was killed already began no later than what is left of its job.
    began = identity_of(THIS_MACHINE, shepherd) or Identity(shepherd, 0)
    return LeftJob(began, identity_of(THIS_MACHINE, main), group or None)


def main() -> None:
    if DETACH in sys.argv and os.fork():
        os._exit(0)
    left = watch(sys.stdin)
    if left.containers:
        # Found by their labels. Without -S: the client of the engines is no part of the standard library.
        path = [sys.path[0], *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        cleaning = subprocess.Popen([sys.executable, "-m", "jobmeter", "doctor", "--clean"], env=environment)
    end_jobs(THIS_MACHINE, left.jobs)
    if left.containers:
        cleaning.wait()


if __name__ == "__main__":
    main()
