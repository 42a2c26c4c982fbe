"""Ends the jobs of a workflow whose runner was killed.

The guard is a separate process. It reads lines from its stdin: a job starts (`+SHEPHERD MAIN GROUP`: two pids,
and the directory of the job's cgroup if it has one), a job has ended (`-SHEPHERD`), some jobs run in containers
(`c`). The last line of the runner is `.`. If stdin ends without it, the runner was killed, and the guard ends
what is left of its jobs.
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
    """The runner's side: `add` a job before it runs, `remove` it when it has ended. Any thread may call them."""

    def __init__(self, *, detached: bool = False) -> None:
        """`detached`: the guard is not our child. Some programs, as Ray, kill the children of a process that ends."""
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, *([DETACH] if detached else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # Not in our process group: Ctrl-C, or a kill of the whole group, must not end the guard before us.
            start_new_session=True,
        )
        if detached:
            self._process.wait()  # it forks the guard, and exits

    def add(self, shepherd: int, main: int, group: str | None = None) -> None:
        self._send_line(f"+{shepherd} {main} {group or ''}\n")

    def remove(self, shepherd: int) -> None:
        self._send_line(f"-{shepherd}\n")

    def report_containers(self) -> None:
        """Report that some jobs run in containers, which are not our child processes."""
        self._send_line("c\n")

    def close(self) -> None:
        self._send_line(".\n")
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def _send_line(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # the guard was killed: `resume` ends what is left
            # Shorter than PIPE_BUF, so lines of several threads stay whole.
            os.write(self._process.stdin.fileno(), line.encode())


class Leftovers(NamedTuple):
    """What a runner left behind."""

    jobs: set[LeftJob]
    containers: bool  # whether containers may be left


def watch(lines: Iterable[str]) -> Leftovers:
    """Read all lines, and return what the runner left: nothing if its last line is `.`."""
    left: dict[int, LeftJob] = {}
    containers = False
    for line in lines:
        if line == ".\n":
            return Leftovers(set(), False)
        if line == "c\n":
            containers = True
            continue
        words = line[1:].rstrip("\n").split(" ", 2)
        left.pop(int(words[0]), None)
        if line.startswith("+"):
            left[int(words[0])] = _job(int(words[0]), int(words[1]), words[2])
    return Leftovers(set(left.values()), containers)


def _job(shepherd: int, main: int, group: str) -> LeftJob:
    # If the shepherd was killed already, its start is unknown: 0 is no later than the start of what is left of its job.
    began = identity_of(THIS_MACHINE, shepherd) or Identity(shepherd, 0)
    return LeftJob(began, identity_of(THIS_MACHINE, main), group or None)


def main() -> None:
    if DETACH in sys.argv and os.fork():
        os._exit(0)
    left = watch(sys.stdin)
    if left.containers:
        # They are found by their labels. Without -S: the client of container runtimes is not in the standard library.
        path = [sys.path[0], *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        cleaning = subprocess.Popen([sys.executable, "-m", "jobmeter", "doctor", "--clean"], env=environment)
    end_jobs(THIS_MACHINE, left.jobs)
    if left.containers:
        cleaning.wait()


if __name__ == "__main__":
    main()
