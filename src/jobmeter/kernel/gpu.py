"""A GPU and its readings, in a form common to all drivers; and which GPUs a job may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class GpuLost(Exception):
    """The GPU no longer answers: it fell off the bus, or was removed."""


class Gpu(NamedTuple):
    """One GPU, or one instance of a GPU that is divided (MIG)."""

    number: int  # of the GPU; all its instances have the same
    uuid: str
    name: str
    instance: int | None  # the number of the MIG instance; None: a whole GPU
    handle: Any
    whole: Any  # the handle of the whole GPU, for power, energy and temperature

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
    processes: dict[int, int | None] | None = None  # pid, as the driver numbers processes → bytes of GPU memory
    process_percent: dict[int, float] | None = None  # pid → share of the time that its kernels ran


def visible(words: str | None, gpus: Sequence[Gpu]) -> list[Gpu] | None:
    """The GPUs that a variable such as `CUDA_VISIBLE_DEVICES` names; None if it names all, or is not set.

    Parsed as CUDA does: numbers or prefixes of UUIDs; the first word that names no GPU ends the list.
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
    if index.isdecimal() and instance.isdecimal():  # GPU:INSTANCE, as container runtimes write it
        return (gpu.number, gpu.instance) == (int(index), int(instance))
    # ROCm ignores case: its documentation has capitals, its `unique_id` has none.
    word = word.lower()
    return word[:4] in ("gpu-", "mig-") and gpu.uuid.lower().startswith(word)
