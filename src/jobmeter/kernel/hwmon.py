"""The sensors of /sys/class/hwmon: temperatures, power, energy (Documentation/hwmon/sysfs-interface.rst)."""

from __future__ import annotations

import os

from jobmeter.kernel.machine import Machine, read_text
from jobmeter.light_typing import NamedTuple


class Sensor(NamedTuple):
    """One temperature of one chip."""

    chip: str  # the name of its driver: coretemp, k10temp, nvme
    label: str
    celsius: float


def chips(machine: Machine) -> dict[str, str]:
    """Folder of each chip → name of its driver; empty if the machine has no sensors."""
    root = f"{machine.sys}/class/hwmon"
    return _named_folders(root)


def _named_folders(root: str) -> dict[str, str]:
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return {}
    folders: dict[str, str] = {}
    for name in names:
        try:
            folders[f"{root}/{name}"] = read_text(f"{root}/{name}/name").strip()
        except OSError:
            continue
    return folders


def temperatures(folder: str, chip: str) -> list[Sensor]:
    """The temperatures of a chip. One that cannot be read, or is not a number, is left out: sensors fail one by one."""
    sensors = []
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith("temp") and name.endswith("_input"))
    except OSError:
        return []
    for name in names:
        thousandths = read_number(f"{folder}/{name}")
        if thousandths is not None:
            label = _text(f"{folder}/{name.removesuffix('_input')}_label")
            sensors.append(Sensor(chip, label, thousandths / 1000))
    return sensors


def read_number(path: str) -> int | None:
    """The integer in a file; None if the file cannot be read or does not hold an integer."""
    try:
        return int(read_text(path))
    except (OSError, ValueError):
        return None


def device_chip(device: str) -> str | None:
    """The folder with the sensors of one device, such as a GPU; None if the device has none."""
    return next(iter(_named_folders(f"{device}/hwmon")), None)


def _text(path: str) -> str:
    try:
        return read_text(path).strip()
    except OSError:
        return ""
