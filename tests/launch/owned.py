"""Jobs whose owner can be killed, and they with their shepherd be left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import Identity
from jobmeter.launch.leftover_jobs import LeftJob, identity_of

_OWNER = """
import os, sys
from jobmeter.launch.spawn import spawn
for script in sys.argv[1:]:
    launched = spawn(["sh", "-c", script], environment=dict(os.environ), own_session=True)
    print(launched.shepherd, launched.main, flush=True)
    sys.stdin.readline()
    launched.execute()
sys.stdin.read()
"""


class Owned:
    def __init__(self, process: subprocess.Popen[str], jobs: list[LeftJob]) -> None:
        self.jobs = jobs
        self._process = process

    @property
    def shepherds(self) -> list[Identity]:
        return [job.shepherd for job in self.jobs]

    def kill_shepherds(self) -> None:
        for shepherd in self.shepherds:
            os.kill(shepherd.pid, signal.SIGKILL)

    def kill_owner(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def owned(*scripts: str) -> Iterator[Owned]:
    """Jobs of these scripts, each below a shepherd; what is left of them in the end is killed."""
    words = [sys.executable, "-c", _OWNER, *scripts]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        jobs = [_job_before_exec(owner) for _ in scripts]
        try:
            yield Owned(owner, jobs)
        finally:
            owner.kill()
            for who in [who for job in jobs for who in (job.shepherd, job.main) if who is not None]:
                if identity_of(THIS_MACHINE, who.pid) == who:
                    os.kill(who.pid, signal.SIGKILL)


def _job_before_exec(owner: subprocess.Popen[str]) -> LeftJob:
    assert owner.stdout is not None
    assert owner.stdin is not None
    shepherd, main = (identity_of(THIS_MACHINE, int(pid)) for pid in owner.stdout.readline().split())
    assert shepherd is not None
    owner.stdin.write("go\n")
    owner.stdin.flush()
    return LeftJob(shepherd, main)
