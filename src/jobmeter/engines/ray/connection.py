"""Connects to a Ray cluster. Whatever goes wrong becomes an error of one line."""

from __future__ import annotations

import logging
import os
import re
import socket
from types import ModuleType
from typing import Any

from jobmeter.errors import LaunchError, UsageError

AUTO = "auto"
_INSTALL = "To install it: pip install 'jobmeter[ray]'"
_ANSWER = 5.0
"""Seconds that a head may take to answer."""
_SETTINGS = 4
"""The type of the SETTINGS frame of HTTP/2."""


def import_ray() -> ModuleType:
    """Ray's package. Raises LaunchError if it is not installed, or cannot be imported, as with too little memory."""
    try:
        import ray
    except ModuleNotFoundError:
        raise LaunchError(f"Ray is not installed. {_INSTALL}") from None
    except ImportError as error:
        raise LaunchError(f"Ray cannot be imported: {error}") from None
    return ray  # type: ignore[no-any-return,unused-ignore]


def wanted_address(option: str | None) -> str:
    """What `--address` or RAY_ADDRESS says: HOST:PORT, or `auto`, the default. Raises UsageError for anything else."""
    address = option or os.environ.get("RAY_ADDRESS") or AUTO
    host, _, port = address.rpartition(":")
    if address != AUTO and ("://" in address or not host or not port.isdecimal() or not 0 < int(port) < 65536):
        raise UsageError(f"--address {address}: it must be HOST:PORT of the head, as `ray start` prints it, or auto")
    return address


def connect(ray: Any, address: str, **options: Any) -> None:
    """Become a driver of the cluster, with options of `ray.init`. Raises LaunchError if that is not possible.

    Raises UsageError if `auto` could be any of several clusters.
    """
    address = _only_cluster_here() if address == AUTO else address
    _check_answers(address)
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # errors are raised, so they need no log
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL, "configure_logging": False}
    try:
        ray.init(address=address, **quiet, **options)
    except Exception as error:  # noqa: BLE001 - Ray raises many kinds
        raise LaunchError(_in_words(address, error)) from None


def open_socket(address: str) -> socket.socket:
    """A connection to the head. Raises OSError if nothing listens there."""
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER)


def _only_cluster_here() -> str:
    """The address of the cluster that runs on this machine.

    If there are several, it is the one that Ray's folder (RAY_TMPDIR) names. Ray itself would take any of them, and
    tasks on a cluster that the user does not mean would disturb others.
    """
    from ray._private import services

    running = sorted(services.find_gcs_addresses())
    current = services.find_bootstrap_address(None)
    if current in running:
        return str(current)
    if len(running) > 1:
        raise UsageError(f"--address: several Ray clusters run here: {', '.join(running)}. Name one of them.")
    if not running:
        raise LaunchError("no Ray cluster runs here. To start one: ray start --head. Another one: --address HOST:PORT")
    return str(running[0])


def _check_answers(address: str) -> None:
    """Raise LaunchError if no head answers: Ray itself would try for a minute, and may then end this process."""
    try:
        with open_socket(address) as connection:
            if os.environ.get("RAY_USE_TLS") in (None, "", "0"):
                _greet(connection)
    except OSError as error:
        why = error.strerror or str(error)
        raise LaunchError(f"no Ray cluster answers at {address}: {why}. Is its head running there?") from None


def _greet(connection: socket.socket) -> None:
    """Raise OSError unless the other side speaks HTTP/2 (RFC 9113), as heads do: it must answer with SETTINGS."""
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0]))
    answer = connection.recv(9)
    if len(answer) < 4 or answer[3] != _SETTINGS:
        raise OSError("what listens there is no head of Ray")


def _in_words(address: str, error: Exception) -> str:
    message = " ".join(str(error).split())
    versions = re.findall(r"(Ray|Python): *(\S+)", message)
    if "ersion mismatch" in message and len(versions) == 4:
        theirs, ours = (" with ".join(f"{name} {number}" for name, number in versions[at : at + 2]) for at in (0, 2))
        return f"the cluster at {address} runs {theirs}, this program {ours}. Use the same versions."
    if "expects this IP address to be either the GCS address or one of the Raylet addresses" in message:
        return f"this machine is no node of the Ray cluster at {address}. Add it: ray start --address={address}"
    sentence = re.split(r"(?<=[.!]) ", message, maxsplit=1)[0] or type(error).__name__
    return f"the Ray cluster at {address} cannot be used: {sentence}"
