"""Real traffic for a network namespace: a pair of interfaces, one end of which is in there."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator

from tests.parts import missing

_FRAME = b"\xff" * 12 + b"\x88\xb5" + b"x" * 986  # to all, of a kind for experiments: 1000 bytes
_NUMBER = itertools.count()


class Wire:
    """Our end of it; the other is `eth0` in the namespace of the process."""

    def __init__(self, pid: int) -> None:
        self.name = f"jm{os.getpid()}n{next(_NUMBER)}"[:15]
        _run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _run("nsenter", "-t", str(pid), "-n", "ip", "link", "set", "eth0", "up")
        _run("ip", "link", "set", self.name, "up")

    def send(self, kilobytes: int) -> None:
        """So many times 1000 bytes to the other end. The kernel may add a few of its own, for IPv6."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
            wire.bind((self.name, 0x88B5))
            for _ in range(kilobytes):
                wire.send(_FRAME)

    def remove(self) -> None:
        """It is gone already with the namespace of its other end."""
        subprocess.run(["ip", "link", "delete", self.name], check=False, capture_output=True)


def _run(*words: str) -> None:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        missing(f"no pair of interfaces can be made here: {done.stderr.strip()}")


@contextlib.contextmanager
def wired(pid: int) -> Iterator[Wire]:
    """A wire to the namespace that this process is in; the test is skipped, or fails, where there can be none."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        missing("needs root and `ip`, to make network interfaces")
    wire = Wire(pid)
    try:
        yield wire
    finally:
        wire.remove()
