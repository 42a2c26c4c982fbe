"""Mounts, variables and GPUs as people write them, and the request they become."""

from __future__ import annotations

import json
import os

import pytest

from jobmeter.errors import UsageError
from jobmeter.launch.container.create_request import create_body
from jobmeter.launch.container.spec import (
    ContainerOptions,
    Gpus,
    Mount,
    options_from,
    parse_environment,
    parse_gpus,
    parse_mount,
    plain_options,
)
from jobmeter.model import Requirement

NOTHING = Requirement()


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("/data:/in", Mount("/data", "/in")),
        ("/data:/in:ro", Mount("/data", "/in", True)),
        ("./x:/in:rw", Mount(os.path.abspath("x"), "/in")),
        (".:/in", Mount(os.getcwd(), "/in")),
        ("cache:/in", Mount("cache", "/in")),
    ],
)
def test_a_mount_is_a_path_of_this_machine_or_a_volume(text: str, mount: Mount) -> None:
    assert mount == parse_mount(text)
    assert text.startswith("cache") == mount.is_volume


@pytest.mark.parametrize("text", ["", "/data", ":/in", "/data:in", "/data:/in:rx", "/a:/b:ro:z"])
def test_a_mount_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_mount(text)


def test_a_variable_without_a_value_has_the_one_it_has_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "a=b")
    assert [("HERE", "a=b"), ("X", ""), ("Y", "c=d")] == [parse_environment(text) for text in ("HERE", "X=", "Y=c=d")]


@pytest.mark.parametrize(
    ("text", "gpus"), [("all", Gpus(-1)), ("2", Gpus(2)), ("device=0,GPU-3", Gpus(0, ("0", "GPU-3")))]
)
def test_gpus_are_all_some_or_those_named(text: str, gpus: Gpus) -> None:
    assert gpus == parse_gpus(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "²", "1.5", "some", "device=", "9999999999"])
def test_other_gpus_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^'[^\n]*' is not all, a number above 0, or device=ID,ID$"):
        parse_gpus(text)


def body(options: ContainerOptions, requirement: Requirement = NOTHING) -> dict[str, object]:
    return create_body(options, ["x"], requirement=requirement, parent="/p", labels={"a": "b"}, stdin=False)


def test_a_request_is_a_limit_and_memory_has_no_swap_beyond_it() -> None:
    host = body(ContainerOptions("i"), Requirement(0.5, 1 << 30, 60))["HostConfig"]
    assert isinstance(host, dict)
    assert (500_000_000, 1 << 30, 1 << 30) == (host["NanoCpus"], host["Memory"], host["MemorySwap"])
    assert "/p" == host["CgroupParent"]
    assert not host["AutoRemove"]


def test_gpus_become_a_request_for_devices() -> None:
    host = body(ContainerOptions("i", gpus=Gpus(0, ("1", "2"))))["HostConfig"]
    assert isinstance(host, dict)
    assert [{"Driver": "", "Count": 0, "DeviceIDs": ["1", "2"], "Capabilities": [["gpu"]]}] == host["DeviceRequests"]


def test_what_is_not_given_is_left_to_the_image() -> None:
    made = body(ContainerOptions("i"))
    assert not {"Entrypoint", "WorkingDir", "User"} & made.keys()
    assert {"NetworkMode", "Mounts", "Memory"} & made["HostConfig"].keys() == set()  # type: ignore[attr-defined]


def test_options_are_plain_values_that_json_gives_back_as_they_were() -> None:
    options = ContainerOptions(
        "python:3.12", mounts=(Mount("/data", "/in", True),), environment={"A": "b"}, gpus=Gpus(0, ("0", "1"))
    )
    assert options == options_from(json.loads(json.dumps(plain_options(options))))
