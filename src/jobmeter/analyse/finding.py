"""The type of a finding."""

from __future__ import annotations

from jobmeter.light_typing import NamedTuple


class Finding(NamedTuple):
    """One thing to report of a run."""

    kind: str  # oom, over_memory, under_cpus, growth, throttled, idle_gpu, left, incomplete and the like
    severity: str  # problem or hint
    text: str
