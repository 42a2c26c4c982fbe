"""TCP connections of this network namespace, with the bytes that each sent and received (sock_diag(7), tcp_info)."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator

from jobmeter.kernel.machine import Machine
from jobmeter.light_typing import NamedTuple

_SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, _DONE, _ERROR = 20, 0x301, 3, 2
_INET_DIAG_INFO = 2
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")  # inet_diag_req_v2: family, protocol, extensions, states; no socket id: all
_MESSAGE_BYTES, _INODE = 72, struct.Struct("=68xI")  # inet_diag_msg
_ATTRIBUTE = struct.Struct("=HH")
_BYTES = struct.Struct("=120xQQ")  # of tcp_info: bytes_acked, bytes_received; Linux 4.1


class TcpConnection(NamedTuple):
    """One TCP socket."""

    inode: int
    received: int
    sent: int  # sent, and acknowledged by the peer


def read_connections() -> list[TcpConnection]:
    """The connections of all users. Raises OSError if the kernel does not list them."""
    connections: list[TcpConnection] = []
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 4) as netlink:
            body = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0xFFFFFFFF)
            netlink.send(_HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 0, 0) + body)
            is_over = False
            while not is_over:
                answer = netlink.recv(1 << 18)
                connections += parse_connections(answer)
                is_over = ends_the_list(answer)
    return connections


def _messages(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The messages of an answer, each as its type and its body."""
    start = 0
    while start + _HEADER.size <= len(content):
        length, kind = _HEADER.unpack_from(content, start)[:2]
        if length < _HEADER.size:
            raise ValueError(f"not a netlink message: {content[start : start + 16]!r}")
        yield kind, content[start + _HEADER.size : start + length]
        start += (length + 3) & ~3


def ends_the_list(content: bytes) -> bool:
    """Whether no answer follows this one. Raises OSError if it says that the kernel cannot list the connections."""
    for kind, body in _messages(content):
        if kind in (_DONE, _ERROR):
            # Both begin with an error code, negative or 0. Without tcp_diag, the kernel answers `done` and -ENOENT.
            code = -int.from_bytes(body[:4], sys.byteorder, signed=True)
            if code > 0:
                raise OSError(code, os.strerror(code), "sock_diag")
            return True
    return not content


def parse_connections(content: bytes) -> list[TcpConnection]:
    """The connections of an answer that have counters; a listening socket has none."""
    connections = []
    for kind, body in _messages(content):
        if kind != _SOCK_DIAG_BY_FAMILY or len(body) < _MESSAGE_BYTES:
            continue
        (inode,) = _INODE.unpack_from(body)
        at = _MESSAGE_BYTES
        while at + _ATTRIBUTE.size <= len(body):
            length, name = _ATTRIBUTE.unpack_from(body, at)
            if name == _INET_DIAG_INFO and length >= _ATTRIBUTE.size + _BYTES.size:
                sent, received = _BYTES.unpack_from(body, at + _ATTRIBUTE.size)
                # The kernel counts the SYN as a byte that was acknowledged.
                connections.append(TcpConnection(inode, received, max(sent - 1, 0)))
            at += max((length + 3) & ~3, _ATTRIBUTE.size)
    return connections


def socket_inodes(machine: Machine, pid: int) -> set[int]:
    """The inodes of the sockets that a process has open. Raises OSError if it has ended or may not be read."""
    inodes = set()
    for name in os.listdir(f"{machine.proc}/{pid}/fd"):
        try:
            target = os.readlink(f"{machine.proc}/{pid}/fd/{name}")
        except OSError:
            continue  # closed since it was listed
        if target.startswith("socket:["):
            inodes.add(int(target[8:-1]))
    return inodes
