"""Finding an engine, and its silence in words."""

from __future__ import annotations

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobmeter.errors import LaunchError
from jobmeter.launch.container_client import EngineGone, connect
from tests.container_engines import Engine


class OldEngine(http.server.BaseHTTPRequestHandler):
    """Docker 1.0, as far as its version goes."""

    def do_GET(self) -> None:
        content = json.dumps({"ApiVersion": "1.12", "Version": "1.0.0"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def address_string(self) -> str:
        return "client"

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def old_engine(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "old.sock")
    server = socketserver.ThreadingUnixStreamServer(path, OldEngine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"unix://{path}"
    server.shutdown()
    server.server_close()


def test_an_engine_that_is_too_old_is_told(old_engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", old_engine)
    with pytest.raises(LaunchError, match=r"its API is too old\..* Upgrade the engine\."):
        connect("docker")


def test_auto_takes_the_engine_that_answers(podman: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr("jobmeter.launch.container_client.DOCKER_ADDRESS", "unix:///nowhere.sock")
    monkeypatch.setenv("CONTAINER_HOST", f"unix://{podman.socket}")
    connection = connect("auto")
    connection.close()
    assert f"unix://{podman.socket}" == connection.address


def test_auto_with_no_engine_at_all_says_what_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    with pytest.raises(EngineGone, match=r"Docker is not running at unix:///nowhere\.sock\. Start it"):
        connect("auto")


def test_a_podman_that_does_not_listen_is_made_to_and_ends_again(
    podman: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CONTAINER_HOST", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name, value in podman.settings().items():
        monkeypatch.setenv(name, value)
    if Path("/run/podman/podman.sock").exists():
        pytest.skip("a Podman of the machine's own listens here")
    connection = connect("podman")
    address = connection.address
    assert connection.api.ping()
    connection.close()
    assert "jobmeter-podman-" in address
    assert not Path(address.removeprefix("unix://")).exists()
