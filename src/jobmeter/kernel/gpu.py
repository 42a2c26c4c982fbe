"""What a GPU is and what it reports, whichever driver it has; and which GPUs a job may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class GpuLost(Exception):
    """The GPU no longer answers: it fell off the bus, or was removed."""


class Gpu(NamedTuple):
    """One GPU, or one instance of a GPU that is divided (MIG)."""

    number: int  # of the GPU, also of its instances
    uuid: str
    name: str
    instance: int | None  # the number of the MIG instance; None: a whole GPU
    handle: Any
    whole: Any  # the handle of the GPU; power, energy and temperature are of all of it

    @property
    def label(self) -> str:
        return f"GPU {self.number}" if self.instance is None else f"GPU {self.number}, MIG instance {self.instance}"


class GpuReading(NamedTuple):
    """What a GPU reported at one moment; None is "not reported"."""

    busy_percent: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    power_watts: float | None = None
    energy_joules: float | None = None  # since the driver was loaded
    celsius: float | None = None
    throttled_by: tuple[str, ...] | None = None
    processes: dict[int, int | None] | None = None  # pid → bytes of GPU memory, as the driver numbers processes
    process_percent: dict[int, float] | None = None  # pid → share of the time that its kernels ran


def visible(words: str | None, gpus: Sequence[Gpu]) -> list[Gpu] | None:
    """The GPUs that `CUDA_VISIBLE_DEVICES` or `NVIDIA_VISIBLE_DEVICES` names; None when all are, or it is not set.

    As CUDA reads it: numbers or beginnings of UUIDs, up to the first that names no GPU.
    """
    if words is None or words.strip() == "all":
        return None
    chosen: list[Gpu] = []
    for word in (each.strip() for each in words.split(",")):
        named = [gpu for gpu in gpus if _is_named(gpu, word)]
        if not named:
            break
        chosen += [gpu for gpu in named if gpu not in chosen]
    return chosen


def _is_named(gpu: Gpu, word: str) -> bool:
    if word.isdecimal():
        return gpu.number == int(word)
    index, _, instance = word.partition(":")
    if index.isdecimal() and instance.isdecimal():  # as container runtimes number instances
        return (gpu.number, gpu.instance) == (int(index), int(instance))
    return word[:4] in ("GPU-", "MIG-") and gpu.uuid.startswith(word)
