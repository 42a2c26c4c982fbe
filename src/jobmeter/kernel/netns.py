"""A network namespace held by a descriptor: its interfaces can be read even after its last process has ended."""

from __future__ import annotations

import os
import threading

from jobmeter.errors import NoData
from jobmeter.kernel.hostfs import Traffic, parse_interfaces
from jobmeter.kernel.machine import Machine, read_text

_CLONE_NEWNET = 0x40000000


class NetworkNamespace:
    """The namespace that a process is in. Only root may read it once the process has ended."""

    def __init__(self, machine: Machine, pid: int) -> None:
        """Raises NoData if there is no such process, or it is in the network namespace of this process."""
        self._path = f"{machine.proc}/{pid}/net/dev"
        try:
            if os.readlink(f"{machine.proc}/{pid}/ns/net") == os.readlink(f"{machine.proc}/self/ns/net"):
                raise NoData("it is in the network namespace of jobmeter")
            self._descriptor = os.open(f"{machine.proc}/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise NoData(f"the network of process {pid} cannot be read: {error.strerror}") from None

    def traffic(self) -> Traffic:
        """The counters of the interfaces, read through the process. Raises OSError if the process has ended."""
        return parse_interfaces(read_text(self._path))

    def last_traffic(self) -> Traffic:
        """The same after the process has ended. Raises OSError if this user may not enter the namespace."""
        traffic: list[Traffic] = []
        failed: list[BaseException] = []

        def enter_and_read() -> None:
            try:
                _enter(self._descriptor)
                traffic.append(parse_interfaces(read_text("/proc/thread-self/net/dev")))
            except (OSError, ValueError) as error:
                failed.append(error)

        # In a separate thread, which then ends: a thread that has entered the namespace stays in it.
        thread = threading.Thread(target=enter_and_read, name="jobmeter-netns")
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return traffic[0]

    def close(self) -> None:
        os.close(self._descriptor)


def _enter(descriptor: int) -> None:
    """Call setns(2); `os.setns` exists since Python 3.12."""
    if hasattr(os, "setns"):
        os.setns(descriptor, _CLONE_NEWNET)
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
