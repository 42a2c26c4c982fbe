"""Parses the stats of a container, which Docker and Podman return, into one form."""

from __future__ import annotations

from typing import Any

from jobmeter.collectors.container import ContainerStats

_NEVER = "0001-01-01"
"""In Docker's answer for a container that does not run, the time begins with this."""


def parse_stats(answer: dict[str, Any]) -> ContainerStats | None:
    """One answer as numbers in base units; None if it is all zeros, because the container has ended.

    Podman has no `max_usage` and no list of processes; cgroup v2 has no `max_usage` either, and
    writes `read` where v1 writes `Read`. With the network of the host, or none, there are no `networks`.
    """
    memory = answer.get("memory_stats") or {}
    if str(answer.get("read", "")).startswith(_NEVER) or not memory.get("usage"):
        return None
    networks = list((answer.get("networks") or {}).values())
    return ContainerStats(
        cpu_seconds=_seconds((answer.get("cpu_stats") or {}).get("cpu_usage") or {}),
        mem_current=memory.get("usage"),
        mem_peak=memory.get("max_usage") or None,
        net_rx_bytes=_sum(networks, "rx_bytes"),
        net_tx_bytes=_sum(networks, "tx_bytes"),
        block_read_bytes=_blocks(answer, "read"),
        block_write_bytes=_blocks(answer, "write"),
        pids=(answer.get("pids_stats") or {}).get("current"),
    )


def _seconds(usage: dict[str, Any]) -> float | None:
    nanoseconds = usage.get("total_usage")
    return None if nanoseconds is None else round(nanoseconds / 1e9, 6)


def _sum(networks: list[dict[str, Any]], field: str) -> int | None:
    return sum(int(network.get(field, 0)) for network in networks) if networks else None


def _blocks(answer: dict[str, Any], operation: str) -> int | None:
    """Bytes over all devices. None for an empty list: no device was used, or there is no accounting."""
    entries = (answer.get("blkio_stats") or {}).get("io_service_bytes_recursive")
    if not entries:
        return None
    return sum(int(entry["value"]) for entry in entries if str(entry.get("op", "")).lower() == operation)
