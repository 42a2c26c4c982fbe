"""What engines answer, in one form. The answers are of Docker 20.10 and Podman 4.3, cut short."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.collectors.container import ContainerStats
from jobmeter.launch.container.stats import parse_stats

DOCKER_V1: dict[str, Any] = {
    "read": "2026-11-15T23:28:31.993180835Z",
    "pids_stats": {"current": 3},
    "blkio_stats": {
        "io_service_bytes_recursive": [
            {"major": 254, "minor": 0, "op": "Read", "value": 4096},
            {"major": 254, "minor": 0, "op": "Write", "value": 8192},
            {"major": 254, "minor": 16, "op": "Read", "value": 1},
            {"major": 254, "minor": 0, "op": "Total", "value": 12288},
        ]
    },
    "cpu_stats": {"cpu_usage": {"total_usage": 1_234_567_890}},
    "memory_stats": {"usage": 1000, "max_usage": 5000, "stats": {"cache": 100}, "limit": 10**9},
    "networks": {"eth0": {"rx_bytes": 10, "tx_bytes": 20}, "eth1": {"rx_bytes": 1, "tx_bytes": 2}},
}
DOCKER_V2: dict[str, Any] = {
    **DOCKER_V1,
    "memory_stats": {"usage": 1000, "stats": {"anon": 900}, "limit": 10**9},
    "blkio_stats": {"io_service_bytes_recursive": [{"op": "read", "value": 7}, {"op": "write", "value": 9}]},
}
PODMAN: dict[str, Any] = {
    "read": "2026-11-15T23:28:37.413763531Z",
    "pids_stats": {"current": 1},
    "blkio_stats": {"io_service_bytes_recursive": [], "io_serviced_recursive": None},
    "cpu_stats": {"cpu_usage": {"total_usage": 24_000_000, "percpu_usage": [1, 2]}},
    "memory_stats": {"usage": 2000, "max_usage": 0, "limit": 10**9},
    "networks": {},
    "Id": "1b536fae124d",
}
DOCKER_ENDED: dict[str, Any] = {
    "read": "0001-01-01T00:00:00Z",
    "pids_stats": {},
    "blkio_stats": {"io_service_bytes_recursive": None},
    "cpu_stats": {"cpu_usage": {"total_usage": 0}},
    "memory_stats": {},
}


@pytest.mark.parametrize(
    ("answer", "stats"),
    [
        (DOCKER_V1, ContainerStats(1.234568, 1000, 5000, 11, 22, 4097, 8192, 3)),
        (DOCKER_V2, ContainerStats(1.234568, 1000, None, 11, 22, 7, 9, 3)),
        (PODMAN, ContainerStats(0.024, 2000, None, None, None, None, None, 1)),
    ],
    ids=["Docker, cgroup v1", "Docker, cgroup v2", "Podman"],
)
def test_an_answer_is_numbers_in_base_units_and_what_is_not_reported_is_absent(
    answer: dict[str, Any], stats: ContainerStats
) -> None:
    assert stats == parse_stats(answer)


@pytest.mark.parametrize("answer", [DOCKER_ENDED, {}, {"memory_stats": None}])
def test_the_zeros_of_a_container_that_ended_are_no_answer(answer: dict[str, Any]) -> None:
    assert parse_stats(answer) is None
