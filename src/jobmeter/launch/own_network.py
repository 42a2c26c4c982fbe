"""A network namespace of the job's own, so that its traffic is counted exactly, connected by slirp4netns.

The namespace is made by a thread of this process, and the shepherd that the thread starts is in it, with the job. From
there, slirp4netns passes connections on as an ordinary program would: nothing of the machine's network is changed.
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
    """LaunchError, before anything is started, where there can be none."""
    if os.geteuid() != 0:
        raise LaunchError(
            "--own-network: only root can make a network for a job. `--container` has one for every user."
        )
    if shutil.which("slirp4netns") is None:
        raise LaunchError("--own-network: needs slirp4netns. On Debian: apt-get install slirp4netns")


def in_new_network(make: Callable[[], Made]) -> Made:
    """What `make` returns, called by a thread in a new network namespace, in which all that it starts remains.

    LaunchError when there can be no such namespace.
    """
    made: list[Made] = []
    failed: list[BaseException] = []

    def enter_and_make() -> None:
        try:
            if call("unshare", _CLONE_NEWNET) != 0:
                raise LaunchError("--own-network: the kernel makes no network namespace here")
            made.append(make())
        except BaseException as error:  # noqa: BLE001 - raised again, in the thread that waits
            failed.append(error)

    # In a thread that then ends: the rest of this process stays where it is.
    thread = threading.Thread(target=enter_and_make, name="jobmeter-network")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


class Connection:
    """The program that connects a namespace with the network of the machine."""

    def __init__(self, pid: int) -> None:
        """Connect the namespace that this process is in. LaunchError when that fails."""
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
        """End the connection; its interface is gone with it, and so is what that counted."""
        self._process.kill()  # it keeps nothing; and signals that jobmeter blocks for its own use, it blocks too
        self._process.communicate()
