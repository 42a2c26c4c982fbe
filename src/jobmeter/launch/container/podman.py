"""Podman has no daemon: finding its socket, or starting its service for as long as it is needed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time

from jobmeter.errors import LaunchError

_PATIENCE = 20.0
_IDLE = "60"
"""Seconds without a request after which the service ends, in case jobmeter is killed before it can end it."""


def podman_address(*, may_start: bool = False) -> str | None:
    """The address of Podman, None if there is none; with `may_start`, `podman` if its service could be started."""
    named = os.environ.get("CONTAINER_HOST")
    if named:
        return named
    user_runtime = os.environ.get("XDG_RUNTIME_DIR")
    places = ["/run/podman/podman.sock"] if os.getuid() == 0 else []
    if user_runtime:
        places.append(f"{user_runtime}/podman/podman.sock")
    for path in places:
        if os.path.exists(path):
            return f"unix://{path}"
    return "podman" if may_start and shutil.which("podman") else None


class PodmanService:
    """`podman system service` on a socket of its own."""

    def __init__(self, process: subprocess.Popen[bytes], folder: str) -> None:
        self.address = f"unix://{folder}/podman.sock"
        self._process = process
        self._folder = folder

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def start_service() -> PodmanService:
    """Start Podman's service. Raises LaunchError if that is not possible."""
    program = shutil.which("podman")
    if program is None:
        raise LaunchError("there is no Podman here. Install it, or set its address with CONTAINER_HOST.")
    folder = tempfile.mkdtemp(prefix="jobmeter-podman-")
    socket, log = f"{folder}/podman.sock", f"{folder}/log"
    with open(log, "wb") as output:
        # In a session of its own: Ctrl-C is for the job, and its container runtime must survive it.
        process = subprocess.Popen(
            [program, "system", "service", f"--time={_IDLE}", f"unix://{socket}"],
            cwd=folder,  # its conmon leaves a file `oom` in the working directory
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + _PATIENCE
    while not os.path.exists(socket):
        if process.poll() is not None or time.monotonic() > deadline:
            last_line = _last_line(log)
            PodmanService(process, folder).end()
            raise LaunchError(f"Podman's service could not be started: {last_line or 'no message'}")
        time.sleep(0.02)
    return PodmanService(process, folder)


def _last_line(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
        return lines[-1] if lines else ""
    return ""
