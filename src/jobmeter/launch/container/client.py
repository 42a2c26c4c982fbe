"""The connection to a container runtime: finding it, opening it, and its errors in one line.

The only module that uses the package `docker`, which connects to Docker and, through its compatible
socket, to Podman.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobmeter.errors import LaunchError, UsageError
from jobmeter.launch.container.podman import PodmanService, podman_address, start_service
from jobmeter.launch.container.spec import RUNTIMES

if TYPE_CHECKING:
    from docker import APIClient

DOCKER_ADDRESS = "unix:///var/run/docker.sock"
_NOT_FOUND = 404
_ANSWER = 20
"""Seconds in which a container runtime must answer the first requests. A frozen one still accepts connections."""
_WORK = 60
"""Seconds that later requests may take: starting a container on a busy machine takes long."""


def runtime_name(text: str | None) -> str:
    """The container runtime that `--engine` names."""
    if text is not None and text not in RUNTIMES:
        raise UsageError(f"--engine: {text!r} is not one of {', '.join(RUNTIMES)}")
    return text or "auto"


class RuntimeUnreachable(LaunchError):
    """The container runtime does not answer."""


class RequestRefused(LaunchError):
    """The container runtime answered with an error: HTTP status `status`, message `reason`."""

    def __init__(self, text: str, status: int, reason: str) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason


def is_missing(error: LaunchError) -> bool:
    """Whether the container runtime answered "not found"."""
    return isinstance(error, RequestRefused) and error.status == _NOT_FOUND


class RuntimeConnection:
    """A connection to a container runtime; `service` is a Podman service started for it, which ends with it."""

    def __init__(self, api: APIClient, address: str, service: PodmanService | None = None) -> None:
        self.api = api
        self.address = address
        self._service = service

    @property
    def is_local(self) -> bool:
        return self.address.startswith("unix://")

    def is_answering(self) -> None:
        """Allow requests to take longer from now on: the first ones were answered."""
        self.api.timeout = _WORK

    def close(self) -> None:
        self.api.close()
        if self._service is not None:
            self._service.end()


def connect(runtime: str) -> RuntimeConnection:
    """Connect to Docker, to Podman, or (`auto`) to the first that answers. Raises LaunchError if none does."""
    if runtime == "docker":
        return _open(os.environ.get("DOCKER_HOST") or DOCKER_ADDRESS, "Docker")
    if runtime == "podman":
        return _connect_podman()
    try:
        return _open(os.environ.get("DOCKER_HOST") or DOCKER_ADDRESS, "Docker")
    except RuntimeUnreachable as reason:
        if os.environ.get("DOCKER_HOST") or not podman_address(may_start=True):
            raise
        try:
            return _connect_podman()
        except RuntimeUnreachable:
            raise reason from None


def _connect_podman() -> RuntimeConnection:
    address = podman_address()
    if address is not None:
        return _open(address, "Podman")
    service = start_service()
    try:
        return _open(service.address, "Podman", service)
    except BaseException:
        service.end()
        raise


def _open(address: str, name: str, service: PodmanService | None = None) -> RuntimeConnection:
    try:
        import docker
        from docker.utils import kwargs_from_env
    except ImportError:
        raise LaunchError("containers need the package `docker`: pip install 'jobmeter[docker]'") from None
    version = os.environ.get("DOCKER_API_VERSION") or "auto"
    with translated(name, address):
        try:
            # Certificates as for Docker's own client: DOCKER_TLS_VERIFY, DOCKER_CERT_PATH.
            tls = kwargs_from_env().get("tls", False) if address.startswith("tcp://") else False
            api = docker.APIClient(base_url=address, version=version, tls=tls, timeout=_ANSWER)
            api.ping()
        except docker.errors.InvalidVersion as error:
            raise LaunchError(f"{name} at {address}: its API is too old. {error} Upgrade {name}.") from None
        except docker.errors.TLSParameterError as error:
            raise LaunchError(f"{name} at {address}: {' '.join(str(error).split())}") from None
    return RuntimeConnection(api, address, service)


@contextlib.contextmanager
def translated(name: str, address: str) -> Iterator[None]:
    """Turn every error of the client into RuntimeUnreachable or RequestRefused, with one line that says what to do."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except APIError as error:
        status = error.response.status_code if error.response is not None else 0
        reason = " ".join(str(error.explanation or error).split())
        raise RequestRefused(_refusal(name, reason), status, reason) from None
    except json.JSONDecodeError:
        raise  # an empty answer: callers handle it
    except (DockerException, RequestException, OSError) as error:
        raise RuntimeUnreachable(_absence(name, address, error)) from None


def _refusal(name: str, reason: str) -> str:
    if "is too new" in reason or "is too old" in reason:
        return (
            f"{name}: the versions of its API and of this client do not match: {reason}. "
            "Upgrade the older one, or unset DOCKER_API_VERSION."
        )
    return f"{name}: {reason}"


def _absence(name: str, address: str, error: BaseException) -> str:
    cause = _os_error(error)
    path = address.removeprefix("unix://")
    if isinstance(cause, PermissionError):
        group = "become a member of the group docker" if name == "Docker" else "use the socket of your own Podman"
        return f"{name}: no permission on {path}. Run as root, {group}, or choose another with --engine."
    if isinstance(cause, (FileNotFoundError, ConnectionRefusedError)):
        start = "systemctl start docker" if name == "Docker" else "systemctl start podman.socket"
        variable = "DOCKER_HOST" if name == "Docker" else "CONTAINER_HOST"
        return f"{name} is not running at {address}. Start it ({start}), or set its address with {variable}."
    if "timed out" in str(cause or error):
        return f"{name} at {address} does not answer: it is frozen or overloaded. Restart it, or try again."
    return f"{name} at {address} does not answer: {' '.join(str(cause or error).split())}"


def _os_error(error: BaseException | None) -> OSError | None:
    """The OSError behind the errors of the libraries, which wrap each other, some as an argument; None if not found."""
    visited: list[BaseException] = []
    waiting = [error]
    while waiting:
        present = waiting.pop()
        if present is None or present in visited:
            continue
        visited.append(present)
        if isinstance(present, OSError) and present.errno is not None:
            return present
        waiting += [present.__cause__, present.__context__]
        waiting += [argument for argument in present.args if isinstance(argument, BaseException)]
        reason = getattr(present, "reason", None)
        waiting.append(reason if isinstance(reason, BaseException) else None)
    return None
