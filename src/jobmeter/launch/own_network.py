"""A network namespace of the job's own, so that its traffic is counted exactly, connected by slirp4netns.

A thread of this process creates the namespace and starts the shepherd, which is in the namespace, with the job.
slirp4netns forwards connections from there, as an ordinary program: the network of the machine is not changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from typing import TypeVar

from jobmeter.errors import LaunchError
from jobmeter.kernel.libc import call

_CLONE_NEWNET = 0x40000000
_MTU = "65520"

Made = TypeVar("Made")


def check_own_network() -> None:
    """Raise LaunchError, before anything is started, if a job cannot have its own network here."""
    if os.geteuid() != 0:
        raise LaunchError(
            "--own-network: only root can make a network for a job. `--container` has one for every user."
        )
    if shutil.which("slirp4netns") is None:
        raise LaunchError("--own-network: needs slirp4netns. On Debian: apt-get install slirp4netns")


def in_new_network(make: Callable[[], Made]) -> Made:
    """Call `make` in a new network namespace, in which all processes that it starts stay, and return its result.

    Raises LaunchError if the namespace cannot be created.
    """
    made: list[Made] = []
    failed: list[BaseException] = []

    def enter_and_make() -> None:
        try:
            if call("unshare", _CLONE_NEWNET) != 0:
                raise LaunchError("--own-network: the kernel refused to create a network namespace")
            made.append(make())
        except BaseException as error:  # noqa: BLE001 - raised again, in the thread that waits
            failed.append(error)

    # In a thread that then ends: the other threads of this process stay in their namespace.
    thread = threading.Thread(target=enter_and_make, name="jobmeter-network")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


class SlirpConnection:
    """The program that connects a namespace with the network of the machine."""

    def __init__(self, pid: int) -> None:
        """Connect the network namespace of process `pid`. Raises LaunchError if that fails."""
        ready, announce = os.pipe()
        command = ["slirp4netns", "--configure", f"--mtu={_MTU}", f"--ready-fd={announce}", str(pid), "tap0"]
        try:
            self._process = subprocess.Popen(
                command,
                pass_fds=[announce],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the job: it may still have something to send
            )
        except OSError as error:
            os.close(ready)
            raise LaunchError(f"--own-network: slirp4netns: {error.strerror}") from None
        finally:
            os.close(announce)
        with os.fdopen(ready, "rb") as file:
            if not file.read(1):
                self._fail()
        self.pid = self._process.pid

    def _fail(self) -> None:
        self._process.kill()
        errors = self._process.communicate()[1].decode(errors="replace").strip().splitlines()
        raise LaunchError(f"--own-network: slirp4netns: {errors[-1] if errors else 'it ended at once'}")

    def close(self) -> None:
        """End the connection. Its network interface disappears, with its counters."""
        self._process.kill()  # it has nothing to save, and has inherited the signals that jobmeter blocks
        self._process.communicate()
