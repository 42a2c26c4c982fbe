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
"""Seconds that a head may take to answer."""
_SETTINGS = 4
"""The type of a frame of HTTP/2."""


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
            wanted = _only_cluster_here() if wanted == "auto" else wanted
            _check_answers(wanted)
            _connect(self.ray, wanted)
        self.is_alive = True
        worker = self.ray._private.worker.global_worker
        self.gcs: Any = worker.gcs_client
        self.address = str(worker.node.gcs_address)
        self.session_directory = str(worker.node.get_session_dir_path())
        self.has_dashboard = bool(worker.node.address_info.get("webui_url"))
        if not self._is_own and wanted not in ("auto", self.address):
            raise UsageError(f"--address: this program is connected to {self.address} already, not to {wanted}")

    def check_alive(self) -> None:
        """LaunchError when the head no longer listens."""
        try:
            _open_socket(self.address).close()
        except OSError as error:
            # Without its head, Ray would wait for a minute for an end of the connection, and end this process then.
            self.is_alive = False
            raise LaunchError(f"the Ray cluster at {self.address} is gone: {error.strerror or error}") from None

    def close(self) -> None:
        if self._is_own and self.is_alive:
            self.ray.shutdown()


def _only_cluster_here() -> str:
    """The address of the cluster that runs on this machine.

    Where there are several, it is the one that Ray's folder (RAY_TMPDIR) names. Ray itself would take any of them, and
    samplers on a cluster that the user does not mean would disturb others.
    """
    from ray._private import services

    running = sorted(services.find_gcs_addresses())
    current = services.find_bootstrap_address(None)
    if current in running:
        return str(current)
    if len(running) > 1:
        raise UsageError(f"--address: several Ray clusters run here: {', '.join(running)}. Name one of them.")
    if not running:
        raise LaunchError("no Ray cluster runs on this machine. Name its head: --address HOST:PORT")
    return str(running[0])


def _check_answers(address: str) -> None:
    """LaunchError when no head is there: Ray itself would try for a minute, and may then end this process."""
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"--address: {address!r} is neither HOST:PORT nor auto")
    try:
        with _open_socket(address) as connection:
            if os.environ.get("RAY_USE_TLS") in (None, "", "0"):
                _greet(connection)
    except OSError as error:
        why = error.strerror or str(error)
        raise LaunchError(f"no Ray cluster answers at {address}: {why}. Is its head running there?") from None


def _open_socket(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER)


def _greet(connection: socket.socket) -> None:
    """OSError unless the other side speaks HTTP/2, as heads do: the greeting of RFC 9113, answered by settings."""
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0]))
    answer = connection.recv(9)
    if len(answer) < 4 or answer[3] != _SETTINGS:
        raise OSError("what listens there is no head of Ray")


def _connect(ray: Any, address: str) -> None:
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # what goes wrong is raised, or in the report
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
