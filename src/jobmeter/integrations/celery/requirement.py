"""What a task requests: `@app.task(jobmeter={"memory": "2g", "cpus": 2, "runtime": "10m"})`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobmeter.api.options import requirement_of
from jobmeter.errors import UsageError, quote
from jobmeter.model import Requirement
from jobmeter.suggestion import suggest

NOTHING = Requirement()
_REQUESTS = ("memory", "cpus", "runtime")


class TaskRequirements:
    """The requirements of all tasks of a worker, checked when it starts."""

    def __init__(self, tasks: Iterable[Any]) -> None:
        self.problems: list[str] = []
        self._by_name: dict[str, Requirement | None] = {}
        for task in tasks:
            try:
                self._by_name[task.name] = of_task(task)
            except UsageError as error:
                self._by_name[task.name] = NOTHING
                why = str(error).rstrip(".")
                self.problems.append(f"task {task.name}: {why}. The task is measured without a requirement.")

    def of(self, task: Any) -> Requirement | None:
        """What the task requests; None for a task that is not to be measured."""
        return self._by_name.get(task.name, NOTHING)


def of_task(task: Any) -> Requirement | None:
    """What the option `jobmeter` of a task says; None for `jobmeter=False`. Raises UsageError if it is not valid."""
    requests = getattr(task, "jobmeter", None)
    if requests is False:
        return None
    if requests is None or requests is True:
        return NOTHING
    if not isinstance(requests, Mapping):
        raise UsageError(f"{quote(requests)} is not a dict, as {{'memory': '2g'}}")
    for name in requests:
        if name not in _REQUESTS:
            raise UsageError(f"there is no request {quote(name)}. {suggest(str(name), _REQUESTS)}".rstrip(". "))
    memory, cpus, runtime = (requests.get(name) for name in _REQUESTS)
    try:
        return requirement_of(cpus, memory, runtime)
    except (TypeError, ValueError):
        raise UsageError(f"{quote(dict(requests))} is no requirement, as {{'memory': '2g', 'cpus': 2}} is") from None
