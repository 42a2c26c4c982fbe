"""Jobs whose owner can be killed, and they with their shepherd be left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.launch.ending import Shepherd, shepherd_of

_OWNER = """
import os, sys
from jobmeter.launch.spawn import spawn
for script in sys.argv[1:]:
    launched = spawn(["sh", "-c", script], environment=dict(os.environ))
    launched.open_gate()
    print(launched.shepherd, flush=True)
sys.stdin.read()
"""


class Owned:
    def __init__(self, process: subprocess.Popen[str], shepherds: list[Shepherd]) -> None:
        self.shepherds = shepherds
        self._process = process

    def kill_owner(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def owned(*scripts: str) -> Iterator[Owned]:
    """Jobs of these scripts, each below a shepherd; what is left of them in the end is killed."""
    words = [sys.executable, "-c", _OWNER, *scripts]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        found = [shepherd_of(THIS_MACHINE, int(owner.stdout.readline())) for _ in scripts]
        shepherds = [each for each in found if each is not None]
        assert len(shepherds) == len(scripts)
        try:
            yield Owned(owner, shepherds)
        finally:
            owner.kill()
            for shepherd in shepherds:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(shepherd.pid, signal.SIGKILL)
