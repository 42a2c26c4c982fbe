"""A container runtime: the requests to Docker and Podman, with all that differs between them."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from jobmeter.collectors.container import ContainerStats
from jobmeter.errors import CommandNotExecutable, CommandNotFound, JobmeterError, LaunchError
from jobmeter.kernel.machine import cpu_count
from jobmeter.launch.container import client as container_client
from jobmeter.launch.container.client import RequestRefused
from jobmeter.launch.container.spec import ContainerOptions
from jobmeter.launch.container.stats import parse_stats
from jobmeter.model import Requirement

_ONE_SHOT = (1, 41)
"""The first API version that returns stats without waiting a second for a second reading."""
_PODMAN_WITH_GPUS = 5
_PREPARING = re.compile(r"^preparing container \w+ for attach: ")
"""How Podman's message about a container that cannot be started begins."""
_PROGRAM = re.compile(r'exec: "(.+?)":|executable file `(.+?)`')
"""How runc and crun name the program."""
_NOT_FOUND = ("not found in $PATH", "no such file or directory", "a command that was not found")
_NOT_EXECUTABLE = ("permission denied", "is a directory")


class ContainerState(NamedTuple):
    """A container as its container runtime reports it. Times are seconds since 1970 by the clock of the runtime."""

    status: str  # created running paused exited dead …
    running: bool
    pid: int
    exit_code: int
    oom_killed: bool
    started: float | None
    finished: float | None


class ListedContainer(NamedTuple):
    """A container in a list."""

    id: str
    name: str
    image: str
    status: str
    labels: dict[str, str]


class ContainerRuntime:
    """Docker or Podman. Every method raises RuntimeUnreachable if there is no answer, RequestRefused for an error."""

    def __init__(self, connection: container_client.RuntimeConnection) -> None:
        self._connection = connection
        self._api = connection.api
        self.name = "Docker"
        version = self._request(self._api.version)
        components = [component.get("Name", "") for component in version.get("Components") or []]
        self.is_podman = any("Podman" in name for name in components)
        if self.is_podman:
            self.name = "Podman"
        self.version = str(version.get("Version", ""))
        self._info: dict[str, Any] = self._request(self._api.info)
        connection.is_answering()
        numbers = str(version.get("ApiVersion", "1.24")).split(".")
        self._one_shot = tuple(int(number) for number in numbers[:2] if number.isdigit()) >= _ONE_SHOT

    def _request(self, call: Callable[..., Any], *words: Any, **options: Any) -> Any:
        with container_client.translated(self.name, self._connection.address):
            return call(*words, **options)

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine, so that its containers are processes visible here."""
        return self._connection.is_local

    @property
    def cpus(self) -> int:
        """How many CPUs its machine has."""
        return int(self._info.get("NCPU") or 0) or cpu_count()

    @property
    def address(self) -> str:
        return self._connection.address

    def why_no_parent(self) -> str | None:
        """Why its containers cannot be put below a cgroup made here; None when they can."""
        if not self.is_local:
            return f"{self.name} is on another machine"
        if self._info.get("Rootless") or "name=rootless" in (self._info.get("SecurityOptions") or []):
            return f"{self.name} is rootless"
        driver = self._info.get("CgroupDriver")
        return None if driver == "cgroupfs" else f"{self.name} leaves cgroups to {driver}"

    def image_command(self, image: str, pull: str, notify: Callable[[str], None]) -> list[str]:
        """The default command of the image, which is fetched if it is missing and `pull` allows that."""
        try:
            config = self._request(self._api.inspect_image, image).get("Config") or {}
        except RequestRefused as refused:
            if refused.status != 404:
                raise
            if pull == "never":
                raise LaunchError(
                    f"{self.name} has no image {image}. "
                    f"Fetch it ({self.name.lower()} pull {image}), or leave out --pull never."
                ) from None
            self._pull(image, notify)
            config = self._request(self._api.inspect_image, image).get("Config") or {}
        return [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])]

    def _pull(self, image: str, notify: Callable[[str], None]) -> None:
        notify(f"{self.name} has no image {image} and fetches it")
        # Without a tag every tag would be fetched.
        name, tag = (image, None) if ":" in image.rpartition("/")[2] or "@" in image else (image, "latest")
        try:
            lines = str(self._request(self._api.pull, name, tag=tag)).splitlines()
        except RequestRefused as refused:
            raise LaunchError(f"{self.name} has no image {image} and cannot fetch it: {refused.reason}") from None
        for line in lines:
            with contextlib.suppress(ValueError):  # podman may add lines that are not JSON
                if error := json.loads(line).get("error"):
                    raise LaunchError(
                        f"{self.name} has no image {image} and cannot fetch it: {' '.join(error.split())}"
                    )

    def create(
        self,
        options: ContainerOptions,
        command: list[str],
        *,
        requirement: Requirement,
        parent: str | None,
        labels: dict[str, str],
        name: str,
        stdin: bool,
    ) -> str:
        """Create a container that is not yet started, and return its id."""
        from jobmeter.launch.container.create_request import create_body

        if options.gpus is not None and self.is_podman and int(self.version.split(".")[0]) < _PODMAN_WITH_GPUS:
            raise LaunchError(f"Podman {self.version} ignores --gpus through its API. Use Docker, or Podman 5.")
        body = create_body(options, command, requirement=requirement, parent=parent, labels=labels, stdin=stdin)
        try:
            created = self._request(self._api.create_container_from_config, body, name)
        except RequestRefused as refused:
            if "already in use" in refused.reason:
                raise LaunchError(
                    f"{self.name}: a container named {name} already exists. "
                    f"Remove it ({self.name.lower()} rm {name}), or use another --container-name."
                ) from None
            raise
        return str(created["Id"])

    def attach(self, container: str, command: list[str], *, stdin: bool) -> socket.socket:
        """A socket that returns the output of the container in frames, from its first byte on, and takes its input.

        Raises the same errors as `start`, because Podman looks for the program already here.
        """
        streams = {"stdout": 1, "stderr": 1, "stream": 1, "stdin": int(stdin)}
        try:
            stream = self._request(self._api.attach_socket, container, streams)
        except RequestRefused as refused:
            raise start_refused(refused, command) from None
        # The client may return a file around the socket, which must not read ahead: nothing is sent before the start.
        connection: socket.socket = stream._sock if hasattr(stream, "_sock") else stream
        return connection

    def start(self, container: str, command: list[str]) -> None:
        """Start it. Raises CommandNotFound or CommandNotExecutable if the image has no such program."""
        try:
            self._request(self._api.start, container)
        except RequestRefused as refused:
            raise start_refused(refused, command) from None

    def state(self, container: str) -> ContainerState:
        state = self._request(self._api.inspect_container, container)["State"]
        return ContainerState(
            status=str(state.get("Status", "")),
            running=bool(state.get("Running")),
            pid=int(state.get("Pid") or 0),
            exit_code=int(state.get("ExitCode") or 0),
            oom_killed=bool(state.get("OOMKilled")),
            started=_seconds(state.get("StartedAt")),
            finished=_seconds(state.get("FinishedAt")),
        )

    def inspect(self, container: str) -> dict[str, Any]:
        """What `docker inspect` shows of a container, named by id or name."""
        inspection: dict[str, Any] = self._request(self._api.inspect_container, container)
        return inspection

    def wait(self, container: str) -> None:
        """Return when it no longer runs."""
        self._request(self._api.wait, container)

    def kill(self, container: str, number: int) -> None:
        """Send a signal to its first process; no error if that has ended."""
        try:
            self._request(self._api.kill, container, number)
        except RequestRefused as refused:
            if refused.status not in (404, 409) and "running" not in refused.reason:
                raise

    def resume(self, container: str) -> None:
        """Resume a paused container; no error if it is not paused."""
        try:
            self._request(self._api.unpause, container)
        except RequestRefused as refused:
            if not 400 <= refused.status <= 500:
                raise

    def stats(self, container: str) -> ContainerStats | None:
        """The present stats of a container; None if it does not run."""
        options = {"one_shot": True} if self._one_shot else {}
        try:
            answer = self._request(self._api.stats, container, stream=False, **options)
        except RequestRefused as refused:
            if refused.status in (404, 409):
                return None
            raise
        except ValueError:
            return None  # Podman answers with nothing when it has ended
        return parse_stats(answer)

    def remove(self, container: str) -> None:
        """Remove it, running or not, with its volumes that have no name; no error if it was already removed."""
        try:
            self._request(self._api.remove_container, container, force=True, v=True)
        except RequestRefused as refused:
            # 409: another client is removing it.
            if refused.status not in (404, 409):
                raise

    def labelled(self, label: str) -> list[ListedContainer]:
        """The containers with a label, running or not."""
        entries = self._request(self._api.containers, all=True, filters={"label": label})
        return [
            ListedContainer(
                str(entry["Id"]),
                str((entry.get("Names") or [""])[0]).lstrip("/"),
                str(entry.get("Image", "")),
                str(entry.get("State", "")),
                dict(entry.get("Labels") or {}),
            )
            for entry in entries
        ]

    def close(self) -> None:
        self._connection.close()


def open_runtime(name: str) -> ContainerRuntime:
    """Docker, Podman, or with `auto` the first that answers. Raises LaunchError, with what to do, if there is none."""
    connection = container_client.connect(name)
    try:
        return ContainerRuntime(connection)
    except BaseException:
        connection.close()
        raise


def start_refused(refused: RequestRefused, command: list[str]) -> JobmeterError:
    """The error for a container that was not started, because of its program or for another reason."""
    reason = _PREPARING.sub("", refused.reason)
    named = _PROGRAM.search(reason)
    # An entry point is a program too, and may be the one that is missing.
    program = next(filter(None, named.groups())) if named else command[0] if command else "its program"
    if named or "executable" in reason:
        if any(words in reason for words in _NOT_FOUND):
            return CommandNotFound(f"{program}: there is no such program in the image")
        if any(words in reason.lower() for words in _NOT_EXECUTABLE):
            return CommandNotExecutable(f"{program}: cannot be executed in the image")
    if "could not select device driver" in reason:
        return LaunchError(f"Docker: {reason}. Install the NVIDIA container toolkit, or leave out --gpus.")
    return LaunchError(str(refused).replace(refused.reason, reason))


def _seconds(text: object) -> float | None:
    """Seconds since 1970 of `2026-11-15T23:27:21.014561708Z`; None for the year 1, which means never."""
    from datetime import datetime

    if not isinstance(text, str) or text.startswith("0001"):
        return None
    whole, _, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    zone = rest[len(digits) :] if rest else ""
    if not rest:
        whole, zone = (whole[:-1], "Z") if whole.endswith("Z") else (whole[:19], whole[19:])
    try:
        moment = datetime.fromisoformat(whole + ("+00:00" if zone in ("Z", "") else zone))
    except ValueError:
        return None
    return moment.timestamp() + float(f"0.{digits or 0}")
