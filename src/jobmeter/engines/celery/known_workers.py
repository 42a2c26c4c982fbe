"""The workers that a runner has heard from: what is free on each, and which of them count as dead."""

from __future__ import annotations

import time
from collections.abc import Iterable

from jobmeter.engines.celery.placement import Need, WorkerState, free_amounts


class KnownWorkers:
    """Updated by beacons. Callers that share it between threads must hold a lock."""

    def __init__(self) -> None:
        self.states: dict[str, WorkerState] = {}
        self._heard: dict[str, float] = {}  # when the last beacon came
        self._freed: dict[str, dict[str, Need]] = {}  # tasks that ended since the last beacon
        self._to_forget: dict[str, set[str]] = {}  # ended tasks whose reports have all arrived

    def set_all(self, states: Iterable[WorkerState]) -> None:
        """Set the workers that discovery found. Whether they stay alive is known only from later beacons."""
        self.states = {state.name: state for state in states}

    def take(self, state: WorkerState) -> None:
        """Take a beacon."""
        self.states[state.name] = state
        self._heard[state.name] = time.monotonic()
        self._to_forget.get(state.name, set()).intersection_update(state.tasks)
        freed = self._freed.get(state.name, {})
        self._freed[state.name] = {task_id: need for task_id, need in freed.items() if not state.has_ended(task_id)}

    def note_ended(self, worker: str, task_id: str, need: Need | None = None) -> None:
        """Note that a task has ended; `need` is what the last beacon of its worker still counts as taken."""
        if need is not None:
            self._freed.setdefault(worker, {})[task_id] = need
        self._to_forget.setdefault(worker, set()).add(task_id)

    def to_forget(self) -> dict[str, list[str]]:
        """By worker, the tasks whose reports it need not keep any more."""
        return {worker: sorted(ids) for worker, ids in self._to_forget.items() if ids}

    def heard_at(self, worker: str) -> float:
        """When the last beacon of a worker came, by `time.monotonic`; 0 if none came."""
        return self._heard.get(worker, 0.0)

    def silent_for(self, seconds: float) -> list[str]:
        """The workers whose last beacon came more than `seconds` ago."""
        now = time.monotonic()
        return [name for name, heard in self._heard.items() if now - heard > seconds]

    def restart_timeouts(self) -> None:
        """Count no worker as silent so far, because the broker was away."""
        self._heard = dict.fromkeys(self._heard, time.monotonic())

    def remove(self, worker: str) -> None:
        del self._heard[worker]
        del self.states[worker]
        self._to_forget.pop(worker, None)

    def free(self, given: dict[str, list[Need]]) -> dict[str, dict[str, float]]:
        """The amounts that are free on each worker; `given` are the tasks sent to it that are in no beacon yet."""
        return {
            name: free_amounts(state, given.get(name, ()), self._freed.get(name, {}).values())
            for name, state in self.states.items()
        }
