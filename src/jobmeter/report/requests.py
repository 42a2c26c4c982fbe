"""What a run requested too little or too much of, in words: for `check` and the summaries of `run` and workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobmeter.analyse.overuse import Verdict, overuses
from jobmeter.analyse.resource import GPU, MEMORY
from jobmeter.analyse.stored_run import of_record
from jobmeter.analyse.waste import Waste, wasted_requests
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import Record

TOO_LITTLE, TOO_MUCH = "too little", "too much"
_GIB = 2.0**30


def request_lines(record: Record) -> list[tuple[str, str]]:
    """The lines about requests in the summary of one run: their names (`too little`, `too much`) and texts."""
    run = of_record(record)
    return [
        *((TOO_LITTLE, overuse_text(verdict)) for verdict in overuses(run)),
        *((TOO_MUCH, waste_text(waste)) for waste in wasted_requests([run])),
    ]


def overuse_text(verdict: Verdict) -> str:
    """`Memory at least 163 MiB of the 100 MiB requested`, `out of memory with the 100 MiB requested`."""
    requested = text(verdict.requested, verdict.resource.unit)
    if verdict.cause:
        return f"{verdict.cause} with the {requested} requested"
    at_least = "at least " if verdict.at_least else ""
    return f"{verdict.resource.name} {at_least}{text(verdict.used, verdict.resource.unit)} of the {requested} requested"


def waste_text(waste: Waste) -> str:
    """`requested 8 GiB, used 1.2 GiB at most: 6.5 GiB less would free 1.08 GiB-h a run`."""
    if waste.resource is MEMORY:
        return (
            f"requested {text(waste.requested, 'bytes')}, used {text(waste.used, 'bytes')} at most: "
            f"{text(waste.less, 'bytes')} less would free {waste.freed / _GIB:.3g} GiB-h a run"
        )
    if waste.resource is GPU:
        return (
            f"requested {waste.requested:.10g} GPU{'s' * (waste.requested != 1)}, used {waste.used:.10g} at most: "
            f"{waste.less:.10g} less would free {waste.freed:.3g} GPU-h a run"
        )
    return (
        f"requested {waste.requested:.10g} CPUs, used {waste.used:.1f} at most: "
        f"{waste.less:.10g} less would free {waste.freed:.3g} core-h a run"
    )
