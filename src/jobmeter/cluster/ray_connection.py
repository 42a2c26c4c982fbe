"""Connecting to a Ray cluster, and what can go wrong with that, in one line each."""

from __future__ import annotations

import logging
import os
import re
import socket
from types import ModuleType
from typing import Any

from jobmeter.errors import LaunchError, UsageError

INSTALL = "To install it: pip install 'jobmeter[ray]'"
_ANSWER = 5.0
"""Seconds that a head may take to accept a connection."""


def import_ray() -> ModuleType:
    """Ray's package. LaunchError when it is not installed."""
    try:
        import ray
    except ImportError:
        raise LaunchError(f"Ray is not installed. {INSTALL}") from None
    return ray  # type: ignore[no-any-return,unused-ignore]


class Connection:
    """A connection to a cluster: this program's own, if it has one already."""

    def __init__(self, address: str | None) -> None:
        """`address` is HOST:PORT, or `auto`: the cluster that runs here. LaunchError when there is none."""
        wanted = address or os.environ.get("RAY_ADDRESS") or "auto"
        if "://" in wanted:
            raise UsageError(
                f"--address: {wanted}: name the head of the cluster as HOST:PORT, as `ray start` prints it"
            )
        self.ray = import_ray()
        self._is_own = not self.ray.is_initialized()
        if self._is_own:
            _check_answers(wanted)
            _connect(self.ray, wanted)
        worker = self.ray._private.worker.global_worker
        self.gcs: Any = worker.gcs_client
        self.address = str(worker.node.gcs_address)
        self.session_directory = str(worker.node.get_session_dir_path())
        self.has_dashboard = bool(worker.node.address_info.get("webui_url"))
        if not self._is_own and wanted not in ("auto", self.address):
            raise UsageError(f"--address: this program is connected to {self.address} already, not to {wanted}")

    def close(self) -> None:
        if self._is_own:
            self.ray.shutdown()


def _check_answers(address: str) -> None:
    """LaunchError when nothing listens there: Ray itself would try for a minute, and may then end this process."""
    host, separator, port = address.rpartition(":")
    if address in ("auto", "local"):
        return
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"--address: {address!r} is neither HOST:PORT nor auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise LaunchError(f"no Ray cluster answers at {address}: {why}. Is its head running there?") from None


def _connect(ray: Any, address: str) -> None:
    try:
        ray.init(
            address=address,
            namespace="jobmeter",
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            configure_logging=False,
        )
    except ConnectionError as error:
        raise LaunchError(f"no Ray cluster at {address}: {_first_sentence(error)}") from None
    except (RuntimeError, ValueError, OSError, TimeoutError) as error:
        raise LaunchError(_in_words(address, error)) from None


def _in_words(address: str, error: Exception) -> str:
    message = str(error)
    if "ersion mismatch" in message:
        versions = re.findall(r"(Ray|Python): *(\S+)", message)
        if len(versions) == 4:
            theirs, ours = (" with ".join(f"{name} {number}" for name, number in part) for part in _halves(versions))
            return f"the cluster at {address} runs {theirs}, this program {ours}. Use the same versions."
    return f"the Ray cluster at {address} cannot be used: {_first_sentence(error)}"


def _halves(versions: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    return versions[:2], versions[2:]


def _first_sentence(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return re.split(r"(?<=[.!]) ", words, maxsplit=1)[0]
