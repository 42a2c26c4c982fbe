"""Real container engines: a Docker and a Podman of the tests' own, from their first use to the end of the session."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.parts import missing
from tests.running import NOBODY, Metered, copy_packages, environment, jobmeter, meter, readable_copy

IMAGE = "bb:1"
PYTHON = "/usr/bin/python3"
WITH_PYTHON = [f"--mount={path}:{path}:ro" for path in ("/usr", "/lib", "/lib64")]
_PATIENCE = 30.0
_PODMAN_CONF = """
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=10000:10000"]
netns = "none"
[engine]
runtime = "runc"
"""
_ROOTLESS_CONF = """
[containers]
default_ulimits = []
netns = "host"
utsns = "host"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


class Engine:
    """One engine with the image of the tests, in a folder of its own."""

    def __init__(self, name: str, folder: str, user: int = 0) -> None:
        self.name = name
        self.user = user
        self.folder = folder
        self.socket = f"{folder}/{name}.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(f"{self.folder}/log", "ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                # Podman's conmon leaves a file `oom` where it was started.
                cwd=self.folder,
                env={**os.environ, **self.settings()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await_answer()

    def _command(self) -> list[str]:
        if self.name == "podman":
            who = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"] if self.user else []
            return [*who, "podman", "system", "service", "--time=0", f"unix://{self.socket}"]
        return [
            "dockerd", "-H", f"unix://{self.socket}", "--data-root", f"{self.folder}/data", "--exec-root",
            f"{self.folder}/exec", "--pidfile", f"{self.folder}/pid", "--bridge=none", "--iptables=false",
            "--ip6tables=false",
        ]  # fmt: skip

    def settings(self) -> dict[str, str]:
        """What a Podman needs to know, also one that jobmeter starts."""
        if self.name != "podman":
            return {}
        return {
            "CONTAINERS_CONF": f"{self.folder}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{self.folder}/storage.conf",
            **({"HOME": self.folder, "XDG_RUNTIME_DIR": self.folder} if self.user else {}),
        }

    def configure(self) -> None:
        if self.name == "podman":
            Path(self.folder, "containers.conf").write_text(_ROOTLESS_CONF if self.user else _PODMAN_CONF)
            places = f'graphroot = "{self.folder}/root"\nrunroot = "{self.folder}/run"\n'
            places += f'rootless_storage_path = "{self.folder}/root"\n[storage.options]\nignore_chown_errors = "true"\n'
            driver = "vfs" if self.user else "overlay"
            Path(self.folder, "storage.conf").write_text(f'[storage]\ndriver = "{driver}"\n{places}')

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while self.client("version").returncode != 0:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                missing(f"{self.name} does not start here: {Path(self.folder, 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def client(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Docker's own client, which speaks to both."""
        words = ["/usr/bin/docker", "-H", f"unix://{self.socket}", *arguments]
        return subprocess.run(words, capture_output=True, text=True, check=False, **options)

    def import_image(self) -> None:
        root = Path(self.folder, "rootfs")
        for name in ("bin", "tmp", "dev", "proc", "usr", "lib", "lib64"):
            (root / name).mkdir(parents=True, exist_ok=True)
        shutil.copy("/bin/busybox", root / "bin")
        os.symlink("busybox", root / "bin" / "sh")
        subprocess.run(["tar", "-C", str(root), "-cf", f"{self.folder}/image.tar", "."], check=True)
        done = self.client("import", f"{self.folder}/image.tar", IMAGE)
        assert done.returncode == 0, done.stderr

    def environment(self) -> dict[str, str]:
        """An environment in which `jobmeter` finds this engine and the package `docker`, and no other engine."""
        path = f"{readable_copy()}/src:{client_packages()}"
        return {**environment(), "PYTHONPATH": path, **self.address()}

    def address(self) -> dict[str, str]:
        """The variables by which `jobmeter` finds this engine, and no other."""
        nowhere = f"unix://{self.folder}/nowhere.sock"
        places = {"DOCKER_HOST": nowhere, "CONTAINER_HOST": nowhere}
        places["DOCKER_HOST" if self.name == "docker" else "CONTAINER_HOST"] = f"unix://{self.socket}"
        return places

    def jobmeter(self, *arguments: str, user: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        """`jobmeter ARGUMENTS` where this engine is."""
        return jobmeter(*arguments, user=user, **{"env": self.environment(), "stdin": subprocess.DEVNULL, **options})

    def meter(self, *command: str, options: Sequence[str] = (), **more: Any) -> Metered:
        """`jobmeter run --container` and its record."""
        given = ["--container", IMAGE, "--engine", self.name, "--network", "none", *options]
        return meter(*command, options=given, **{"env": self.environment(), "stdin": subprocess.DEVNULL, **more})

    def containers(self) -> list[str]:
        """The names of all containers there are."""
        return self.client("ps", "--all", "--format", "{{.Names}}").stdout.split()

    def inspect(self, name: str) -> dict[str, Any]:
        (inspected,) = json.loads(self.client("inspect", name).stdout)
        fields: dict[str, Any] = inspected
        return fields

    def kill(self) -> None:
        """End the daemon at once, without a word to its containers."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        _kill_and_await(Path(self.folder, "exec", "containerd", "containerd.pid"))

    def end(self) -> None:
        for name in self.containers():
            self.client("rm", "--force", name)
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(_PATIENCE)
        _kill_those_of(self.folder)
        _unmount_below(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)


def _kill_and_await(pid_file: Path) -> None:
    """End a daemon's daemon, which is no child of ours; the next one would find its files locked."""
    pid = int(pid_file.read_text())
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


def _kill_those_of(folder: str) -> None:
    """What a daemon left running has its folder, which is nobody else's, in its command or its environment.

    A rootless Podman keeps a process for its namespaces; a Docker that died leaves the parents of its containers.
    """
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.encode() in (path / "cmdline").read_bytes() + (path / "environ").read_bytes():
                os.kill(int(path.name), signal.SIGKILL)


def groups_left() -> set[str]:
    """The cgroups made for containers, by name, whose jobmeter no longer lives.

    Those of plain commands are never at the root of the hierarchy of devices; at that of memory they may be.
    """
    tops = [Path("/sys/fs/cgroup", name) for name in ("memory", "devices", "")]
    names = {path.name for top in tops if top.is_dir() for path in top.glob("jobmeter-*")}
    return {name for name in names if not os.path.exists(f"/proc/{name.split('-')[1]}")}


def _unmount_below(folder: str) -> None:
    """What a daemon leaves mounted would keep its folder from being removed."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        mounted = [line.split()[4] for line in file]
    for path in sorted((path for path in mounted if path.startswith(folder)), reverse=True):
        subprocess.run(["umount", "--lazy", path], check=False, capture_output=True)


@functools.cache
def client_packages() -> str:
    """A folder with the package `docker` and what it needs, that every user may read."""
    paths = []
    for name in ("docker", "requests", "urllib3", "idna", "charset_normalizer", "certifi"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.submodule_search_locations
        paths.append(spec.submodule_search_locations[0])
    return copy_packages("client-packages", paths, "*.so")


def start_engine(name: str, user: int = 0) -> Engine:
    """An engine of the tests' own; the test is skipped, or fails, where there can be none."""
    program = {"docker": "dockerd", "podman": "podman"}[name]
    if shutil.which(program) is None:
        missing(f"no {program} here")
    if not os.path.exists("/bin/busybox") or not os.path.exists("/usr/bin/docker"):
        missing("no busybox-static or docker client here")
    if os.getuid() != 0:
        missing(f"needs root, to start {program}")
    folder = tempfile.mkdtemp(prefix=f"jobmeter-{name}-")
    os.chmod(folder, 0o755)
    engine = Engine(name, folder, user)
    engine.configure()
    os.chown(folder, user, user)
    engine.start()
    engine.import_image()
    return engine


_RUNNING: list[Engine] = []
"""Those that the tests share."""


def _running(name: str, user: int = 0) -> Iterator[Engine]:
    engine = start_engine(name, user)
    _RUNNING.append(engine)
    yield engine
    _RUNNING.remove(engine)
    engine.end()


@pytest.fixture(scope="session")
def docker() -> Iterator[Engine]:
    yield from _running("docker")


@pytest.fixture(scope="session")
def podman() -> Iterator[Engine]:
    yield from _running("podman")


@pytest.fixture(scope="session")
def rootless() -> Iterator[Engine]:
    """The Podman of an ordinary user, who has no cgroup to give."""
    yield from _running("podman", NOBODY)


@pytest.fixture(scope="session", params=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each of the two in turn."""
    fixture: Engine = request.getfixturevalue(request.param)
    return fixture


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """No container and no cgroup stays behind, whatever the test did."""
    before = groups_left()
    yield
    assert [name for engine in _RUNNING for name in engine.containers()] == []
    assert groups_left() - before == set()
