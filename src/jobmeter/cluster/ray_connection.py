"""The connection to a Ray cluster that is watched."""

from __future__ import annotations

from typing import Any

from jobmeter.engines.ray.connection import AUTO, connect, import_ray, open_socket, wanted_address
from jobmeter.errors import LaunchError, UsageError


class RayConnection:
    """A connection to a cluster. If this program is connected already, that connection is used."""

    def __init__(self, address: str | None) -> None:
        """`address` is HOST:PORT, or `auto`: the cluster that runs here. Raises LaunchError if there is none."""
        wanted = wanted_address(address)
        self.ray = import_ray()
        self._is_own = not self.ray.is_initialized()
        if self._is_own:
            connect(self.ray, wanted, namespace="jobmeter")
        self.is_alive = True
        worker = self.ray._private.worker.global_worker
        self.gcs: Any = worker.gcs_client
        self.address = str(worker.node.gcs_address)
        self.session_directory = str(worker.node.get_session_dir_path())
        self.has_dashboard = bool(worker.node.address_info.get("webui_url"))
        if not self._is_own and wanted not in (AUTO, self.address):
            raise UsageError(f"--address: this program is connected to {self.address} already, not to {wanted}")

    def check_alive(self) -> None:
        """Raise LaunchError if the head does not listen any more."""
        try:
            open_socket(self.address).close()
        except OSError as error:
            # To end the connection without its head, Ray would wait for a minute, and then end this process.
            self.is_alive = False
            raise LaunchError(f"the Ray cluster at {self.address} is gone: {error.strerror or error}") from None

    def close(self) -> None:
        if self._is_own and self.is_alive:
            self.ray.shutdown()
