"""Real traffic for a network namespace: a pair of interfaces, one end of which is in there."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.parts import missing

_FRAME = b"\xff" * 12 + b"\x88\xb5" + b"x" * 986  # to all, of a kind for experiments: 1000 bytes
_NUMBER = itertools.count()

MB = 1_000_000
CLIENT = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
for _ in range(100): connection.sendall(b"x" * 1_000_000)
received = 0
while received < 100_000_000: received += len(connection.recv(1 << 20))
time.sleep(float(sys.argv[3]))
"""
"""Sends 100 MB and receives as much."""
SERVER = """
import socket
with socket.create_server(("", 0)) as listening:
    print(listening.getsockname()[1], flush=True)
    connection, _ = listening.accept()
received = 0
while received < 100_000_000: received += len(connection.recv(1 << 20))
for _ in range(100): connection.sendall(b"y" * 1_000_000)
connection.recv(1)
"""
"""The other end of CLIENT, as a program."""


class Wire:
    """Our end of it; the other is `eth0` in the namespace of the process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.name = f"jm{os.getpid()}n{next(_NUMBER)}"[:15]
        _run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _run("nsenter", "-t", str(pid), "-n", "ip", "link", "set", "eth0", "up")
        _run("ip", "link", "set", self.name, "up")

    def number(self) -> str:
        """Give both ends an address, and return that of the other end; ours is `our_address`."""
        # Of the range for tests of devices (RFC 2544), by process: test workers run side by side.
        number = os.getpid() % 16384
        self.our_address, theirs = (f"198.18.{number >> 6}.{(number & 63) << 2 | host}" for host in (1, 2))
        _run("ip", "address", "add", f"{self.our_address}/30", "dev", self.name)
        _run("nsenter", "-t", str(self._pid), "-n", "ip", "address", "add", f"{theirs}/30", "dev", "eth0")
        return theirs

    def traffic(self) -> tuple[int, int]:
        """Bytes that our end received and sent."""
        counters = Path(f"/sys/class/net/{self.name}/statistics")
        return int((counters / "rx_bytes").read_text()), int((counters / "tx_bytes").read_text())

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
def server(address: str = "127.0.0.1") -> Iterator[int]:
    """One that receives 100 MB and sends as much; its port."""
    with socket.create_server((address, 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                received = 0
                while received < 100 * MB and (data := connection.recv(1 << 20)):
                    received += len(data)
                for _ in range(100):
                    connection.sendall(b"y" * MB)
                connection.recv(1)  # until the other end closes

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]


class Neighbour(NamedTuple):
    """Another host, as far as the network goes: a namespace at the other end of a wire."""

    pid: int  # of a process in there
    wire: Wire
    address: str

    def run(self, *words: str) -> subprocess.Popen[str]:
        """A program over there; its stdout is a pipe."""
        return subprocess.Popen(["nsenter", "-t", str(self.pid), "-n", *words], stdout=subprocess.PIPE, text=True)


@contextlib.contextmanager
def neighbour() -> Iterator[Neighbour]:
    """A host that is reached over a wire of its own; the test is skipped, or fails, where there can be none."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        missing("needs root and `ip`, to make network interfaces")
    inside = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep 1000"], stdout=subprocess.PIPE)
    try:
        assert inside.stdout is not None
        inside.stdout.readline()
        with wired(inside.pid) as wire:
            yield Neighbour(inside.pid, wire, wire.number())
    finally:
        inside.kill()
        inside.wait()


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
