"""The record of a block that was not sampled: its figures are read at its start and at its end."""

from __future__ import annotations

import functools
import sys

from jobmeter.analyse.headline_table import usage
from jobmeter.collectors.block import MEMORY, BlockCollector
from jobmeter.collectors.contract import Readings
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.light_typing import TYPE_CHECKING, Any, NamedTuple
from jobmeter.meter.aggregate import tidy
from jobmeter.model import Kind, Outcome, Quality, Requirement
from jobmeter.record import build
from jobmeter.redaction import Redaction
from jobmeter.session.measuring import JobEnd, MeasureOptions, relabelled
from jobmeter.working_directory import present_directory

if TYPE_CHECKING:
    from jobmeter.record.types import CollectorState, Described, Provenance, Record, RunIdentity

UNNAMED = "block"
DESCRIBED = {m.key: m.described() for m in BlockCollector.measurements}
_SUMMARY = {
    m.key: (m.unit, m.kind.value, "total" if m.kind is Kind.COUNTER else "peak") for m in BlockCollector.measurements
}


class UnwatchedBlock(NamedTuple):
    """What is known about a block that was not sampled, at its end."""

    identity: RunIdentity
    interval: float
    began: float
    wall_seconds: float
    readings: Readings
    memory: tuple[int, ...]  # resident, at its start and at its end
    qualities: dict[str, Quality]
    end: JobEnd
    failed: str | None  # why it was not sampled, though it lasted


def block_identity(
    run_id: str, options: MeasureOptions, requirement: Requirement, began: float, command: list[str]
) -> RunIdentity:
    """The identity of the run: what is known about a block when it begins."""
    return build.identity(
        run_id,
        name=options.name or UNNAMED,
        command=command,
        directory=present_directory(),
        labels=options.labels,
        requirement=requirement,
        started=began,
        host=build.this_host(THIS_MACHINE),
        user=build.this_user(),
    )


def unwatched_record(block: UnwatchedBlock, outcome: Outcome, provenance: Provenance) -> Record:
    """The record of a block that was not sampled; `provenance` has entries to add to its provenance."""
    summary = _summary(block)
    described: Described = dict(DESCRIBED)
    for key, quality in block.qualities.items():
        described[key] = {**described[key], "quality": quality.value}
    state: CollectorState = {"available": True}
    if block.failed is not None:
        state["failed"] = block.failed
    whole: Provenance = {
        "selected": list(DESCRIBED),
        "collectors": {"block": state},
        "samples": 2,
        "interval_seconds": block.interval,
    }
    whole.update(provenance)
    left_running = block.end.left_running
    if left_running:
        whole["left_running"] = left_running
    return build.complete(
        relabelled(block.identity, block.end.labels),
        outcome,
        usage=usage(summary, described, block.wall_seconds, complete=not left_running),
        measurements=summary,
        processes=[],
        provenance=whole,
        wall_seconds=block.wall_seconds,
        ended=block.began + block.wall_seconds,
    )


def _summary(block: UnwatchedBlock) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for key, value in block.readings.items():
        unit, kind, field = _SUMMARY[key]
        summary[key] = {"unit": unit, "kind": kind, field: tidy(value, unit)}  # type: ignore[arg-type]
    if block.memory:
        unit, kind, _ = _SUMMARY[MEMORY.key]
        mean = round(sum(block.memory) / len(block.memory))
        summary[MEMORY.key] = {
            "unit": unit,
            "kind": kind,
            "peak": max(block.memory),
            "mean": mean,
            "min": min(block.memory),
        }
    return summary


def redacted_command(hidden: Redaction) -> tuple[str, ...]:
    """The command line of this program, with secrets hidden."""
    return _redacted(hidden, tuple(sys.orig_argv or sys.argv or [sys.executable or UNNAMED]))


@functools.cache
def _redacted(hidden: Redaction, words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(hidden.words(words))
