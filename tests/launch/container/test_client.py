"""Finding an engine, and its silence in words."""

from __future__ import annotations

import http.server
import json
import shutil
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobmeter.errors import LaunchError
from jobmeter.launch.container.client import RuntimeUnreachable, connect
from tests.container_engines import Engine
from tests.parts import missing


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


def test_an_engine_that_is_too_old_is_reported(old_engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", old_engine)
    with pytest.raises(LaunchError, match=r"its API is too old\..* Upgrade Docker\."):
        connect("docker")


def test_auto_takes_the_engine_that_answers(podman: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr("jobmeter.launch.container.client.DOCKER_ADDRESS", "unix:///nowhere.sock")
    monkeypatch.setenv("CONTAINER_HOST", f"unix://{podman.socket}")
    connection = connect("auto")
    connection.close()
    assert f"unix://{podman.socket}" == connection.address


def test_auto_with_no_engine_at_all_says_what_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    with pytest.raises(RuntimeUnreachable, match=r"Docker is not running at unix:///nowhere\.sock\. Start it"):
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


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """Certificates of an engine and its clients, which sign themselves."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
    if shutil.which("openssl") is None:
        missing("no openssl here")
    subprocess.run(words, check=True, capture_output=True)
    shutil.copy(folder / "cert.pem", folder / "ca.pem")
    return folder


def test_a_remote_engine_is_shown_the_certificates_that_dockers_own_client_uses(
    certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    context.load_verify_locations(certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OldEngine)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(certificates))
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)  # the client would take these for the engine's
    with pytest.raises(LaunchError, match="its API is too old"):  # so it was queried, and answered
        connect("docker")
    server.shutdown()
    server.server_close()
