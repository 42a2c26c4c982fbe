"""What a job asks for, in words."""

from __future__ import annotations

import re

from jobmeter.model import Requirement
from jobmeter.units import text


def asked_in_words(asked: Requirement) -> str:
    """`4 cpus, 8 GiB, 10m`; empty for one that asks for nothing."""
    words = []
    if asked.cpus is not None:
        words.append(f"{asked.cpus:g} cpu{'s' * (asked.cpus != 1)}")
    if asked.memory_bytes is not None:
        words.append(text(asked.memory_bytes, "bytes"))
    if asked.gpus:
        words.append(f"{asked.gpus} gpu{'s' * (asked.gpus != 1)}")
    if asked.runtime_seconds is not None:
        words.append(duration_in_words(asked.runtime_seconds))
    return ", ".join(words)


def duration_in_words(seconds: float) -> str:
    """`10m`, `2h`, `30 s`: as people write what they ask for, without the zeros of a figure that was measured."""
    return re.sub(r"(?: 0[hms])+$|\.00(?= s$)", "", text(seconds, "seconds"))
