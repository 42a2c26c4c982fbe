"""What a job requests, in words."""

from __future__ import annotations

import re

from jobmeter.model import Requirement
from jobmeter.units import text


def requirement_in_words(requirement: Requirement) -> str:
    """`4 cpus, 8 GiB, 10m`; empty if nothing is requested."""
    words = []
    if requirement.cpus is not None:
        words.append(f"{requirement.cpus:g} cpu{'s' * (requirement.cpus != 1)}")
    if requirement.memory_bytes is not None:
        words.append(text(requirement.memory_bytes, "bytes"))
    if requirement.gpus:
        words.append(f"{requirement.gpus} gpu{'s' * (requirement.gpus != 1)}")
    if requirement.runtime_seconds is not None:
        words.append(duration_in_words(requirement.runtime_seconds))
    return ", ".join(words)


def duration_in_words(seconds: float) -> str:
    """`10m`, `2h`, `30 s`: as people write a request, without the zeros that a measured figure has."""
    return re.sub(r"(?: 0[hms])+$|\.00(?= s$)", "", text(seconds, "seconds"))
