"""A container runtime that accepts connections and never answers, or is down: it holds no command for long."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.container_engines import client_packages
from tests.running import environment, jobmeter, workplace

FROZEN = "does not answer: it is frozen or overloaded"


@pytest.fixture
def frozen(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which Docker and Podman are a socket that nobody reads, as that of a stopped dockerd is."""
    path = f"{tmp_path}/frozen.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(50)
        yield in_place_of_runtimes(f"unix://{path}")


def in_place_of_runtimes(address: str) -> dict[str, str]:
    settings = environment()
    settings["PYTHONPATH"] += f":{client_packages()}"
    return {**settings, "HOME": workplace(), "DOCKER_HOST": address, "CONTAINER_HOST": address}


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--container", "image", "true"],
        ["run", "--container", "image", "--engine", "podman", "true"],
        ["attach", "--container", "name"],
        ["container", "info", "name"],
    ],
    ids=" ".join,
)
def test_a_frozen_runtime_is_reported_in_one_line(frozen: dict[str, str], arguments: list[str]) -> None:
    # A client waits a minute for each answer, unless it is set otherwise: three of them exceed this time.
    done = jobmeter(*arguments, env=frozen, timeout=100)
    assert done.returncode == 125
    assert FROZEN in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_doctor_reports_a_frozen_runtime(frozen: dict[str, str]) -> None:
    done = jobmeter("doctor", "--json", env=frozen, timeout=100)
    by_subject = {entry["subject"]: entry for entry in json.loads(done.stdout)}
    for name in ("docker", "podman"):
        assert FROZEN in by_subject[name]["says"]


def test_what_could_not_be_cleaned_because_its_runtime_is_frozen_is_reported(frozen: dict[str, str]) -> None:
    done = jobmeter("doctor", "--clean", env=frozen, timeout=100)
    assert done.returncode == 0
    assert [line.split(":")[1] for line in done.stderr.splitlines()] == [
        " docker was not checked",
        " podman was not checked",
    ]


def test_what_could_not_be_cleaned_because_its_runtime_is_down_is_reported(tmp_path: Path) -> None:
    down = in_place_of_runtimes(f"unix://{tmp_path}/nobody.sock")
    done = jobmeter("doctor", "--clean", "--json", env=down)
    unchecked = json.loads(done.stdout)["unchecked"]
    assert [text.split(":")[0] for text in unchecked] == ["docker was not checked", "podman was not checked"]
    assert "Docker is not running at" in unchecked[0]
