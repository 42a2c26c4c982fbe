"""The options of a container, as people write them: mounts, environment, GPUs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.settings import positive_whole_number
from jobmeter.working_directory import absolute_path

RUNTIMES = ("auto", "docker", "podman")
PULL = ("missing", "never")


class Mount(NamedTuple):
    """A path of this machine, or the name of a volume, as `target` in the container."""

    source: str
    target: str
    read_only: bool = False

    @property
    def is_volume(self) -> bool:
        return not self.source.startswith("/")


class Gpus(NamedTuple):
    """A number of GPUs (-1: all), or the GPUs with these ids."""

    number: int
    ids: tuple[str, ...] = ()

    @property
    def total(self) -> int | None:
        """How many; None if it is all of a machine that may be another one."""
        return len(self.ids) or (self.number if self.number > 0 else None)


class ContainerOptions(NamedTuple):
    """An image and how to make a container of it. Paths and names are those in the container, except in `mounts`."""

    image: str
    engine: str = "auto"
    mounts: tuple[Mount, ...] = ()
    environment: dict[str, str] = {}
    directory: str | None = None
    user: str | None = None
    network: str | None = None
    gpus: Gpus | None = None
    entrypoint: str | None = None
    pull: str = "missing"
    container_name: str | None = None


def parse_mount(text: str) -> Mount:
    """`SOURCE:TARGET[:ro]`; a source with a slash in it is a path of this machine, else the name of a volume."""
    parts = text.split(":")
    if len(parts) not in (2, 3) or not parts[0] or not parts[1].startswith("/"):
        raise UsageError(f"{text!r} is not SOURCE:TARGET or SOURCE:TARGET:ro, with an absolute TARGET")
    mode = parts[2] if len(parts) == 3 else "rw"
    if mode not in ("ro", "rw"):
        raise UsageError(f"{text!r}: {mode!r} is neither ro nor rw")
    source = parts[0]
    if "/" in source or source in (".", "..", "~"):
        source = absolute_path(os.path.expanduser(source))
    return Mount(source, parts[1], mode == "ro")


def parse_environment(text: str) -> tuple[str, str]:
    """`NAME=VALUE`, or `NAME` for the value it has here."""
    name, separator, value = text.partition("=")
    if not name:
        raise UsageError(f"{text!r} is not NAME=VALUE")
    if separator:
        return name, value
    if name not in os.environ:
        raise UsageError(f"{name} is not set here. Write {name}=VALUE.")
    return name, os.environ[name]


def parse_gpus(text: str) -> Gpus:
    """`all`, a number, or `device=ID,ID`."""
    if text == "all":
        return Gpus(-1)
    kind, _, ids = text.partition("=")
    if kind == "device" and ids:
        return Gpus(0, tuple(ids.split(",")))
    return Gpus(positive_whole_number(text, "all, a number above 0, or device=ID,ID"))


def check(options: ContainerOptions) -> None:
    """Raise UsageError for options that no container runtime accepts."""
    if not options.image or options.image.startswith("-"):
        raise UsageError(f"--container: {options.image!r} is not the name of an image")
    if options.engine not in RUNTIMES:
        raise UsageError(f"--engine: {options.engine!r} is not one of {', '.join(RUNTIMES)}")
    if options.pull not in PULL:
        raise UsageError(f"--pull: {options.pull!r} is not one of {', '.join(PULL)}")


def check_mounts(options: ContainerOptions) -> None:
    """Raise UsageError if a source is not on this machine: Docker would create it as a directory, owned by root."""
    for mount in options.mounts:
        if not mount.is_volume and not os.path.lexists(mount.source):
            raise UsageError(f"--mount: {mount.source}: there is no such file or directory on this machine")


def plain_options(options: ContainerOptions) -> dict[str, Any]:
    """The options as plain JSON values; `options_from` converts them back."""
    fields = options._asdict()
    fields["mounts"] = [mount._asdict() for mount in options.mounts]
    fields["gpus"] = None if options.gpus is None else {"number": options.gpus.number, "ids": list(options.gpus.ids)}
    return fields


def options_from(fields: Mapping[str, Any]) -> ContainerOptions:
    """The options from the fields that `plain_options` returned."""
    gpus = fields.get("gpus")
    return ContainerOptions(
        **{
            **fields,
            "mounts": tuple(Mount(**mount) for mount in fields.get("mounts", ())),
            "gpus": None if gpus is None else Gpus(gpus["number"], tuple(gpus["ids"])),
        }
    )
