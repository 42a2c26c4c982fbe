"""Measures one call in a worker of Ray. No failure here reaches the task."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

from jobmeter.api.blocks import outcome_of_error
from jobmeter.api.options import measure_options
from jobmeter.integrations.warnings import Warnings
from jobmeter.model import Requirement
from jobmeter.session.block import Block
from jobmeter.session.block_steps import Awaited, count_steps
from jobmeter.session.enclosing_run import EnclosingRun

_WARNINGS = Warnings()


class CallMeter:
    """Measures a call that runs, until `end`, which must be called once."""

    def __init__(self, block: Block, enclosing: EnclosingRun) -> None:
        self._block = block
        self._enclosing = enclosing

    def steps(self, iterator: Any) -> Generator[Any, Any, Any]:
        """What a generator yields; only the time inside the generator counts."""
        return count_steps(self._block, iterator)

    def awaited(self, coroutine: Any) -> Awaited:
        """The coroutine as an awaitable; only the time inside the coroutine counts."""
        return Awaited(count_steps(self._block, coroutine))

    def end(self, error: BaseException | None = None) -> None:
        with _WARNINGS.instead_of_failing("the figures of this task are incomplete"):
            self._enclosing.leave()
            if self._block.belongs_here:  # else this is a process that the task forked
                self._block.stop(outcome_of_error(error), None if error is None else type(error).__name__)


def begin(function: Any, settings: dict[str, Any], *, stepped: bool = False) -> CallMeter | None:
    """Measure from here on; None outside of a worker of Ray, or if the call cannot be measured."""
    with _WARNINGS.instead_of_failing("this task is not measured"):
        return _begin(function, settings, stepped)
    return None


def _begin(function: Any, settings: dict[str, Any], stepped: bool) -> CallMeter | None:
    import ray

    if not ray.is_initialized() or ray.get_runtime_context().worker.mode != ray.WORKER_MODE:
        return None
    if settings.get("everywhere"):
        from jobmeter.integrations.ray.installation import install_with

        install_with(settings)
    context = ray.get_runtime_context()
    own_name = function.__qualname__.rpartition("<locals>.")[2]
    # Ray gives the creation of a named actor the name of the actor.
    name = own_name if function.__name__ == "__init__" else context.get_task_name() or own_name
    options = measure_options(
        name, {**_labels(context), **settings["labels"]}, settings["interval"], None, None, settings["store"], True
    )
    # If an actor runs several calls at a time, Ray runs them in separate threads, or by turns in one thread.
    is_alone = threading.current_thread() is threading.main_thread()
    block = Block(
        options,
        _requirement(context.get_assigned_resources()),
        stepped=stepped,
        announced=True,
        own_thread=not is_alone and not stepped,
        warn=_WARNINGS.warn_once,
    )
    block.start()
    return CallMeter(block, EnclosingRun(block.id, for_processes=is_alone and not stepped))


def _labels(context: Any) -> dict[str, str]:
    labels = {
        "task_id": context.get_task_id(),
        "node": context.get_node_id(),
        "ray_job": context.get_job_id(),
        "actor": context.get_actor_id(),
        "actor_name": context.get_actor_name() if context.get_actor_id() else None,
    }
    return {name: str(value) for name, value in labels.items() if value}


def _requirement(resources: Any) -> Requirement:
    """What the task, or its actor, reserved."""
    return Requirement(
        resources.get("CPU") or None,
        int(resources["memory"]) if resources.get("memory") else None,
        None,
        int(resources["GPU"]) if resources.get("GPU", 0) >= 1 else None,
    )
