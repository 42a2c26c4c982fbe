"""A process held by a descriptor: reports its end even if it is not our child, and is safe against reuse of the pid."""

from __future__ import annotations

import fcntl
import os
import signal
import struct

from jobmeter.errors import NoData

_GET_INFO = 0xC040FF0B
"""PIDFD_GET_INFO for the first 64 bytes of struct pidfd_info (linux/pidfd.h)."""
_INFO_EXIT = 1 << 3
_EXIT_CODE_AT = 60


class PidFd:
    """A pidfd: its `fileno` is readable once the process has ended."""

    def __init__(self, pid: int) -> None:
        """Raises NoData if there is no such process, or the system has no pidfds."""
        try:
            self._descriptor = os.pidfd_open(pid)
        except (AttributeError, OSError) as error:
            raise NoData(f"process {pid} has no pidfd: {error}") from None

    def fileno(self) -> int:
        return self._descriptor

    def send(self, number: int) -> None:
        signal.pidfd_send_signal(self._descriptor, number)

    def wait_status(self) -> int | None:
        """The wait status, once the parent has waited for the process; None before that, and before Linux 6.15."""
        info = bytearray(64)
        struct.pack_into("Q", info, 0, _INFO_EXIT)
        try:
            fcntl.ioctl(self._descriptor, _GET_INFO, info)
        except OSError:
            return None
        (mask,) = struct.unpack_from("Q", info, 0)
        (status,) = struct.unpack_from("i", info, _EXIT_CODE_AT)
        return int(status) if mask & _INFO_EXIT else None

    def close(self) -> None:
        os.close(self._descriptor)
