"""GPU clients of the kernel's graphics drivers, as /proc/PID/fdinfo shows them (Documentation/gpu/drm-usage-stats.rst).

i915, xe, amdgpu and others report the engine time and memory of each client: an open file of /dev/dri. The owner of the
process may read it, without root.
"""

from __future__ import annotations

import os

from jobmeter.kernel.machine import Machine, read_bytes
from jobmeter.light_typing import NamedTuple

_UNITS = {b"": 1, b"KiB": 2**10, b"MiB": 2**20, b"GiB": 2**30}
_DEVICE_REGIONS = (b"vram", b"local", b"device")
"""Prefixes of the names of regions in the GPU's own memory: of amdgpu and xe, of i915, of other drivers."""


class DrmClient(NamedTuple):
    """One client of one GPU. Several descriptors, also of several processes, can be the same client."""

    driver: str
    device: str  # its PCI address; "" where the driver does not report it
    client: int
    engine_seconds: dict[str, float]  # by class of engine, since the client was opened
    engine_cycles: dict[str, tuple[int, int]]  # for drivers that count cycles: (of the client, of all)
    device_memory: int  # resident in memory of the GPU
    system_memory: int  # resident in memory of the machine

    @property
    def key(self) -> tuple[str, int]:
        return self.device or self.driver, self.client


def parse_fdinfo(content: bytes) -> DrmClient | None:
    """The client that a file describes; None if it is not a GPU client. Raises ValueError if it cannot be parsed."""
    fields: dict[bytes, bytes] = {}
    for line in content.split(b"\n"):
        name, separator, value = line.partition(b":")
        if separator and name.startswith(b"drm-"):
            fields[name[4:]] = value.strip()
    if b"driver" not in fields or b"client-id" not in fields:
        return None
    seconds: dict[str, float] = {}
    cycles: dict[str, tuple[int, int]] = {}
    for name, value in fields.items():
        if name.startswith(b"engine-") and not name.startswith(b"engine-capacity-"):
            seconds[name[7:].decode(errors="replace")] = _number(value.removesuffix(b" ns"), name) / 1e9
        elif name.startswith(b"cycles-"):
            engine = name[7:]
            total = fields.get(b"total-cycles-" + engine)
            if total is not None:
                cycles[engine.decode(errors="replace")] = _number(value, name), _number(total, name)
    device, system = _memory(fields)
    return DrmClient(
        fields[b"driver"].decode(errors="replace"),
        fields.get(b"pdev", b"").decode(errors="replace"),
        _number(fields[b"client-id"], b"client-id"),
        seconds,
        cycles,
        device,
        system,
    )


def _memory(fields: dict[bytes, bytes]) -> tuple[int, int]:
    """Resident bytes in the memory of the GPU and of the machine. Older kernels write `memory-`, not `resident-`."""
    prefix = b"resident-" if any(name.startswith(b"resident-") for name in fields) else b"memory-"
    device = system = 0
    for name, value in fields.items():
        if name.startswith(prefix):
            amount = _bytes(value, name)
            if name[len(prefix) :].startswith(_DEVICE_REGIONS):
                device += amount
            else:
                system += amount
    return device, system


def _bytes(value: bytes, name: bytes) -> int:
    number, _, unit = value.partition(b" ")
    if unit.strip() not in _UNITS:
        raise ValueError(f"drm-{name.decode(errors='replace')}: unknown unit in {value!r}")
    return _number(number, name) * _UNITS[unit.strip()]


def _number(value: bytes, name: bytes) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"drm-{name.decode(errors='replace')}: no number in {value!r}") from None


def read_clients(machine: Machine, pid: int) -> list[DrmClient]:
    """The GPU clients that a process has open. Raises OSError if it has ended or may not be read."""
    folder = f"{machine.proc}/{pid}"
    clients = []
    for name in os.listdir(f"{folder}/fd"):
        try:
            if not os.readlink(f"{folder}/fd/{name}").startswith("/dev/dri/"):
                continue
            client = parse_fdinfo(read_bytes(f"{folder}/fdinfo/{name}"))
        except OSError:
            continue  # closed since it was listed
        if client is not None:
            clients.append(client)
    return clients
