"""Adds, on request, a few figures of a task to the meta of its result, and to the events of its worker."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jobmeter.integrations.warnings import Warnings
from jobmeter.journal.lines import parse_line
from jobmeter.session.block import Block

if TYPE_CHECKING:
    from jobmeter.record.types import Record

FIELD = "jobmeter"
"""The name of the dict, in the meta and in events."""
RESULT, EVENTS = PLACES = ("result", "events")
_FIGURES = ("cpu_seconds", "memory_peak_bytes", "read_bytes", "write_bytes")
_READY = ("SUCCESS", "FAILURE", "REVOKED")
_TAIL = 1 << 16
"""Bytes at the end of a journal in which the last record is looked for."""
_MOST_ENDED = 1000


def small_usage(run_id: str, wall_seconds: float, usage: Mapping[str, Any]) -> dict[str, Any]:
    """The run, how long it took, and the figures with their quality; what was not measured is absent."""
    measured = [name for name in _FIGURES if name in usage]
    return {
        "run": run_id,
        "wall_seconds": round(wall_seconds, 3),
        **{name: usage[name]["value"] for name in measured},
        "quality": {name: usage[name]["quality"] for name in measured},
    }


class UsageReport:
    """Puts the usage of tasks into results and events, in addition to the store."""

    def __init__(self, places: frozenset[str], warnings: Warnings) -> None:
        self._places = places
        self._warnings = warnings
        self._blocks: dict[str, Block] = {}  # of tasks whose results are to be stored
        self._ended: dict[str, dict[str, Any]] = {}  # of tasks that ran in this process, until their event is sent
        self.in_events = EVENTS in places

    def watch_results(self, task: Any, task_id: str, block: Block) -> None:
        """When the result of the task is stored, put its usage there."""
        if RESULT not in self._places:
            return
        self._blocks[task_id] = block
        backend = task.backend  # each thread has its own
        if getattr(backend, "_jobmeter_adds_usage", False):
            return
        make_meta = backend._get_result_meta

        def make_meta_with_usage(result: Any, state: str, traceback: Any, request: Any, **options: Any) -> Any:
            meta = make_meta(result, state, traceback, request, **options)
            with self._warnings.instead_of_failing("a result has no usage"):
                self._add_to(meta, state, request)
            return meta

        backend._get_result_meta = make_meta_with_usage
        backend._jobmeter_adds_usage = True

    def _add_to(self, meta: dict[str, Any], state: str, request: Any) -> None:
        block = self._blocks.get(getattr(request, "id", None) or "")
        if state in _READY and block is not None and block.belongs_here:
            meta[FIELD] = small_usage(block.id, block.seconds_so_far, block.usage_so_far())

    def forget(self, task_id: str) -> None:
        """Drop what is known about a task whose result was stored."""
        self._blocks.pop(task_id, None)

    def keep(self, task_id: str, record: Record) -> None:
        """Keep the usage of a task that has ended in this process, for its event."""
        if self.in_events:
            self._ended[task_id] = _of_record(record)
            if len(self._ended) > _MOST_ENDED:  # a child of a pool sends no events itself
                del self._ended[next(iter(self._ended))]

    def of_ended(self, task_id: str, journal: str | None) -> dict[str, Any] | None:
        """The usage for a task's event; None if it neither ended in this process nor is the last in the journal."""
        usage = self._ended.pop(task_id, None)
        if usage is not None or journal is None:
            return usage
        record = _last_record(journal)
        return _of_record(record) if record is not None and record["labels"].get("task_id") == task_id else None


def _of_record(record: Record) -> dict[str, Any]:
    return small_usage(record["id"], record.get("wall_seconds", 0.0), record["usage"])


def _last_record(path: str) -> Record | None:
    """The record in the last line of a file; None if that line has no record, or is very long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        size = os.fstat(descriptor).st_size
        tail = os.pread(descriptor, _TAIL, max(size - _TAIL, 0))
    finally:
        os.close(descriptor)
    lines = tail.splitlines()
    entry = parse_line(lines[-1]) if len(lines) > 1 else None
    return entry.get("record") if isinstance(entry, dict) else None
