"""AMD GPUs with the compute driver (ROCm), read from sysfs. Needs neither a library nor root.

The devices are those of /sys/class/kfd/kfd/topology, in the same order as in ROCR_VISIBLE_DEVICES. The state of a
device is in the folder of its PCI device; /sys/class/kfd/kfd/proc has the GPU memory of each process that computes.
"""

from __future__ import annotations

import os

from jobmeter.kernel.gpu import Gpu, GpuLost, GpuReading
from jobmeter.kernel.hwmon import device_chip, read_number
from jobmeter.kernel.machine import Machine, read_text


def parse_properties(content: str) -> dict[str, int]:
    """Parse the file `properties` of a topology node: a name and a number per line."""
    pairs = (line.split() for line in content.split("\n"))
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def find_gpus(machine: Machine) -> list[Gpu]:
    """The GPUs of the topology; its other nodes are CPUs. `Gpu.handle` is the folder of the device and its `gpu_id`."""
    root = f"{machine.sys}/class/kfd/kfd/topology/nodes"
    try:
        names = sorted((name for name in os.listdir(root) if name.isdecimal()), key=int)
    except OSError:
        return []
    gpus: list[Gpu] = []
    for name in names:
        number = read_number(f"{root}/{name}/gpu_id")
        if not number:
            continue
        try:
            minor = parse_properties(read_text(f"{root}/{name}/properties")).get("drm_render_minor", 0)
        except OSError:
            continue  # not readable: this container was given other GPUs
        device = f"{machine.sys}/class/drm/renderD{minor}/device"
        # `unique_id` is hexadecimal digits alone; ROCR_VISIBLE_DEVICES and `rocminfo` have them after `GPU-`.
        uuid = f"GPU-{_text(f'{device}/unique_id') or number}"
        gpus.append(Gpu(len(gpus), uuid, _product(device), None, (device, number), device))
    return gpus


def read_gpu(machine: Machine, gpu: Gpu) -> GpuReading:
    """What the GPU reports now. Raises GpuLost if its folder is gone."""
    device, number = gpu.handle
    if not os.path.isdir(device):
        raise GpuLost(f"{gpu.label}: {device} is gone")
    chip = device_chip(device)
    microwatts = microjoules = thousandths = None
    if chip is not None:
        # Which of the two power files a GPU has depends on its generation.
        microwatts = read_number(f"{chip}/power1_average") or read_number(f"{chip}/power1_input")
        microjoules = read_number(f"{chip}/energy1_input")
        thousandths = read_number(f"{chip}/temp1_input")
    busy = read_number(f"{device}/gpu_busy_percent")
    return GpuReading(
        None if busy is None else float(busy),
        read_number(f"{device}/mem_info_vram_used"),
        read_number(f"{device}/mem_info_vram_total"),
        None if microwatts is None else microwatts / 1e6,
        None if microjoules is None else microjoules / 1e6,
        None if thousandths is None else thousandths / 1000,
        processes=_processes(machine, number),
    )


def _processes(machine: Machine, number: int) -> dict[int, int | None] | None:
    """The GPU memory, by pid, of each process that computes on the GPU; None if the driver does not list processes."""
    root = f"{machine.sys}/class/kfd/kfd/proc"
    try:
        names = os.listdir(root)
    except OSError:
        return None
    amounts = {int(name): read_number(f"{root}/{name}/vram_{number}") for name in names if name.isdecimal()}
    return {pid: amount for pid, amount in amounts.items() if amount}


def _product(device: str) -> str:
    return _text(f"{device}/product_name") or "AMD GPU"


def _text(path: str) -> str:
    try:
        return read_text(path).strip()
    except OSError:
        return ""
