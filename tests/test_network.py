"""Network traffic of real jobs: 100 MB each way, in a network of their own and in that of the machine."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess

import pytest

from jobmeter.kernel.sock_diag import parse_connections, read_connections
from tests.network import CLIENT, MB, SERVER, neighbour, server
from tests.parts import missing, need_root
from tests.running import NOBODY, USERS, interpreter, jobmeter, meter
from tests.waiting import LONG


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
    less = meter("true", options=("--own-network", "--measurements=-proc_processes")).record["measurements"]
    assert ("proc_processes" in less, "proc_cpu_seconds" in less, "netns_rx_bytes" in less) == (False, True, True)
    assert {} == meter("true", options=("--own-network", "--measurements", "none")).record["measurements"]


def test_an_ordinary_user_is_shown_what_a_network_of_its_own_needs() -> None:
    if os.getuid() == 0:
        done = jobmeter("run", "--own-network", "--", "true", user=NOBODY)
        assert 125 == done.returncode
        assert "only root can make a network" in done.stderr
    assert 2 == jobmeter("run", "--own-network", "--container", "x").returncode


def test_a_job_that_shares_the_network_of_the_machine_has_its_packets_exactly() -> None:
    need_root("to count packets in the kernel")
    with neighbour() as there:
        serving = there.run(interpreter(), "-c", SERVER)
        assert serving.stdout is not None
        before = there.wire.traffic()
        words = (interpreter(), "-c", CLIENT, there.address, serving.stdout.readline().strip(), "0")
        done = meter(*words, options=("--measurements", "default,bpf_*"))
        on_the_wire = [now - earlier for now, earlier in zip(there.wire.traffic(), before)]
        serving.wait(LONG)
    assert 0 == done.exit_code, done.stderr
    for figure, bytes_there in zip(("network_rx_bytes", "network_tx_bytes"), on_the_wire):
        assert "exact" == done.quality(figure)
        assert 100 * MB < done.value(figure) < 105 * MB  # headers; a busy machine sends more and smaller packets
        assert bytes_there == pytest.approx(done.value(figure), rel=0.01)


def test_packets_of_others_and_of_loopback_are_not_the_jobs() -> None:
    need_root("to count packets in the kernel")
    script = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    with neighbour() as there:
        foreign = f"{script}while True: s.sendto(b'x' * 1000, ('{there.address}', 9))"
        other = subprocess.Popen([interpreter(), "-c", foreign])
        try:
            own = f"{script}s.sendto(b'x' * 1000, ('{there.address}', 9)); s.sendto(b'x' * 5000, ('127.0.0.1', 9))"
            done = meter(interpreter(), "-c", own, options=("--measurements", "default,bpf_*"))
        finally:
            other.kill()
            other.wait()
    assert (1028, "exact") == (done.value("network_tx_bytes"), done.quality("network_tx_bytes"))


def test_a_socket_that_the_job_was_given_makes_its_packets_at_least() -> None:
    need_root("to count packets in the kernel")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as given:
        os.set_inheritable(given.fileno(), True)
        options = ("--measurements", "default,bpf_*")
        done = meter("true", options=options, pass_fds=(given.fileno(),))
    assert "at least" == done.quality("network_tx_bytes")


def test_packets_are_not_counted_of_a_job_that_already_runs_nor_for_ordinary_users() -> None:
    need_root("to run as another user")
    refused = jobmeter("run", "--measurements", "bpf_rx_bytes", "--", "true", user=NOBODY)
    assert (2, True) == (refused.returncode, "It needs root" in refused.stderr), refused.stderr
    running = subprocess.Popen(["sleep", "100"])
    try:
        refused = jobmeter("attach", "--measurements", "bpf_rx_bytes", str(running.pid))
    finally:
        running.kill()
        running.wait()
    assert "jobs that jobmeter starts" in refused.stderr


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
