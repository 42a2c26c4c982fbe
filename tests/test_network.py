"""Network traffic of real jobs: 100 MB each way, in a network of their own and in that of the machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from jobmeter.kernel.sock_diag import parse_connections, read_connections
from tests.parts import missing, need_root
from tests.running import NOBODY, USERS, interpreter, jobmeter, meter

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


@contextlib.contextmanager
def server() -> Iterator[int]:
    """One that receives 100 MB and sends as much; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

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


def need_slirp() -> None:
    need_root("to make a network namespace")
    if shutil.which("slirp4netns") is None or not os.path.exists("/dev/net/tun"):
        missing("needs slirp4netns and /dev/net/tun")


def test_a_job_in_a_network_of_its_own_has_all_its_bytes_exactly() -> None:
    need_slirp()
    with server() as port:
        words = (interpreter(), "-c", CLIENT, "10.0.2.2", str(port), "0")
        done = meter(*words, options=("--own-network",))
    assert 0 == done.exit_code, done.stderr
    for figure in ("network_rx_bytes", "network_tx_bytes"):
        assert 100 * MB <= done.value(figure) < 101 * MB
        assert "exact" == done.quality(figure)
    assert "network    95.8 MiB received" in done.stderr


def test_a_job_in_a_network_of_its_own_does_not_see_that_of_the_machine() -> None:
    need_slirp()
    listing = "print(sorted(line.split(':')[0].strip() for line in open('/proc/net/dev').readlines()[2:]))"
    done = meter(interpreter(), "-c", listing, options=("--own-network",))
    assert "['lo', 'tap0']" == done.stdout.strip()
    assert 7 == meter("sh", "-c", "exit 7", options=("--own-network",)).exit_code


def test_an_ordinary_user_is_told_what_a_network_of_its_own_needs() -> None:
    if os.getuid() == 0:
        done = jobmeter("run", "--own-network", "--", "true", user=NOBODY)
        assert 125 == done.returncode
        assert "only root can make a network" in done.stderr
    assert 2 == jobmeter("run", "--own-network", "--container", "x").returncode


@USERS
def test_tcp_connections_are_counted_where_the_job_has_no_network_of_its_own(user: int) -> None:
    with server() as port:
        words = (interpreter(), "-c", CLIENT, "127.0.0.1", str(port), "1.5")
        done = meter(*words, options=("--measurements", "default,tcp_*"), user=user)
    assert 0 == done.exit_code, done.stderr
    for figure in ("network_rx_bytes", "network_tx_bytes"):
        assert 100 * MB == done.value(figure)
        assert "at least" == done.quality(figure)


def test_the_traffic_of_a_job_is_not_known_by_default() -> None:
    assert "network_rx_bytes" not in meter("true").record["usage"]


def test_the_connections_of_this_process_are_listed_with_their_bytes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        other, _ = listening.accept()
        with client, other:
            client.sendall(b"x" * 1234)
            other.recv(4096)
            inode = os.fstat(client.fileno()).st_ino
            (mine,) = [each for each in read_connections() if each.inode == inode]
            assert (0, 1234) == (mine.received, mine.sent)


def test_an_answer_that_is_cut_short_or_wrong_is_no_connection() -> None:
    assert [] == parse_connections(b"")
    assert [] == parse_connections(struct.pack("=IHHII", 16 + 10, 20, 2, 0, 0) + b"x" * 10)
    with pytest.raises(ValueError, match="not a netlink message"):
        parse_connections(struct.pack("=IHHII", 3, 20, 2, 0, 0))
