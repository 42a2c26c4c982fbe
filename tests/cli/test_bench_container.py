"""`jobmeter bench --container`."""

from __future__ import annotations

import json

import pytest

from tests.container_engines import IMAGE, Engine

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_every_run_is_in_a_container_of_its_own(docker: Engine) -> None:
    done = docker.jobmeter(
        "bench", "--runs", "2", "--param", "n=1,30", "--container", IMAGE, "--engine", "docker", "--network", "none",
        "--json", "--", "/bin/busybox", "sh", "-c", "i=0; while [ $i -lt {n}0000 ]; do i=$((i+1)); done",
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    one, two = json.loads(done.stdout)["variants"]
    assert [2, 2] == [len(variant["runs"]) for variant in (one, two)]
    assert one["figures"]["cpu_seconds"]["median"] < two["figures"]["cpu_seconds"]["median"]


def test_one_that_fails_there_is_named(docker: Engine) -> None:
    done = docker.jobmeter(
        "bench", "--container", IMAGE, "--engine", "docker", "--network", "none", "--",
        "/bin/busybox", "sh", "-c", "echo no >&2; exit 3",
    )  # fmt: skip
    assert 125 == done.returncode
    assert "failed with exit code 3: no. --ignore-failure" in done.stderr
