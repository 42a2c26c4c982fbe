"""Counts the bytes of IP packets of the sockets in a cgroup, with a small program in the kernel (bpf(2)).

The program is attached to a group of the unified hierarchy and counts for every socket that a process in that group
created. The kernel removes it when the last descriptor of its link is closed: a killed jobmeter leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import struct

from jobmeter.errors import NoData
from jobmeter.light_typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ctypes import CDLL

_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_MAP_CREATE, _MAP_LOOKUP, _PROG_LOAD, _LINK_CREATE = 0, 1, 5, 28
_ARRAY, _CGROUP_SKB = 2, 8  # BPF_MAP_TYPE_ARRAY, BPF_PROG_TYPE_CGROUP_SKB
_INGRESS, _EGRESS = 0, 1  # BPF_CGROUP_INET_INGRESS, BPF_CGROUP_INET_EGRESS
_LOOPBACK = 1  # the index of the loopback interface in every network namespace
_LENGTH, _INTERFACE = 0, 40  # fields of struct __sk_buff: len, ifindex
_INSTRUCTION = struct.Struct("=BBhi")
_TOTALS = struct.Struct("=QQ")


class PacketBytes(NamedTuple):
    """Bytes of packets, their IP headers included."""

    received: int
    sent: int


class PacketCounter:
    """Counts the bytes that the sockets of one group send and receive from now on, except over loopback."""

    def __init__(self, directory: str) -> None:
        """Raises NoData, with the reason, if the kernel refuses the program."""
        self._descriptors: list[int] = []
        try:
            self._map = self._keep(_call(_MAP_CREATE, struct.pack("=5I", _ARRAY, 4, _TOTALS.size, 1, 0)))
            group = self._keep(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            for way in (_INGRESS, _EGRESS):
                program = self._keep(_load(_program(self._map, 8 * way), way))
                self._keep(_call(_LINK_CREATE, struct.pack("=4I", program, group, way, 0)))
        except OSError as error:
            self.close()
            raise NoData(_why_not(error)) from None

    def _keep(self, descriptor: int) -> int:
        self._descriptors.append(descriptor)
        return descriptor

    def read(self) -> PacketBytes:
        import ctypes

        key, totals = ctypes.c_uint32(0), ctypes.create_string_buffer(_TOTALS.size)
        _call(_MAP_LOOKUP, struct.pack("=I4xQQQ", self._map, ctypes.addressof(key), ctypes.addressof(totals), 0))
        return PacketBytes(*_TOTALS.unpack(totals.raw))

    def close(self) -> None:
        for descriptor in reversed(self._descriptors):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._descriptors = []


def _program(totals: int, offset: int) -> bytes:
    """The program: adds the length of a packet at `offset` of the map's value, and lets the packet pass."""
    return b"".join(
        _INSTRUCTION.pack(code, destination | source << 4, jump, value)
        for code, destination, source, jump, value in (
            (0x61, 2, 1, _INTERFACE, 0),  # r2 = skb->ifindex
            (0x15, 2, 0, 4, _LOOPBACK),  # if r2 == 1 goto the end
            (0x61, 2, 1, _LENGTH, 0),  # r2 = skb->len
            (0x18, 3, 2, 0, totals),  # r3 = the value of the map …
            (0x00, 0, 0, 0, offset),  # … + offset
            (0xDB, 3, 2, 0, 0),  # lock *(u64 *)r3 += r2
            (0xB7, 0, 0, 0, 1),  # the end: r0 = 1, let it pass
            (0x95, 0, 0, 0, 0),  # exit
        )
    )


def _load(program: bytes, way: int) -> int:
    import ctypes

    code, terms = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
    count = len(program) // _INSTRUCTION.size
    addresses = ctypes.addressof(code), ctypes.addressof(terms)
    return _call(_PROG_LOAD, struct.pack("=IIQQIIQII16sII", _CGROUP_SKB, count, *addresses, 0, 0, 0, 0, 0, b"", 0, way))


def _call(command: int, attributes: bytes) -> int:
    """Call bpf(2). Raises OSError if it fails."""
    import ctypes

    number = _SYSCALL.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    union = ctypes.create_string_buffer(attributes, max(len(attributes), 72))
    answer: int = _libc().syscall(number, command, ctypes.byref(union), ctypes.c_uint(ctypes.sizeof(union)))
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


@functools.cache
def _libc() -> CDLL:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _why_not(error: OSError) -> str:
    if error.errno in (errno.EPERM, errno.EACCES):
        return "counting packets in the kernel (bpf) needs root, or CAP_BPF and CAP_NET_ADMIN"
    if error.errno in (errno.ENOSYS, errno.EINVAL):
        return "this kernel cannot count the packets of a cgroup (bpf, Linux 5.7)"
    return f"bpf: {error.strerror}"
