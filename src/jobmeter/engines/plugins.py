"""Engines of other packages, named by entry points in the group `jobmeter.engines`.

Their code is not ours: whatever it raises becomes an error of one line that names the engine and its package.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from jobmeter.collectors.plugin_checks import in_words
from jobmeter.collectors.plugins import Entry
from jobmeter.engines.contract import (
    Capabilities,
    Capacity,
    Engine,
    EngineOption,
    LeftTask,
    Receiver,
    Recovered,
    Task,
)
from jobmeter.errors import JobmeterError, LaunchError, UsageError
from jobmeter.model import Value

GROUP = "jobmeter.engines"
_METHODS = ("check", "capacity", "open", "recover", "start", "cancel", "levels", "close")


def plugin_names() -> dict[str, Entry]:
    """The engines of other packages by name. If two have the same name, the first found is used."""
    from importlib.metadata import entry_points

    try:
        points = list(entry_points(group=GROUP))
    except Exception as error:  # noqa: BLE001 - the metadata of any package may be damaged
        raise UsageError(f"--engine: the packages that are installed cannot be listed: {in_words(error)}") from None
    entries = [Entry(point.name, point.value, point.dist.name if point.dist else "?") for point in points]
    return {entry.name: entry for entry in reversed(entries)}


def load_plugin(entry: Entry, options: Mapping[str, str]) -> Engine:
    """The engine that an entry point names. Raises UsageError if it is broken."""
    module, _, attribute = entry.value.partition("[")[0].strip().partition(":")
    subject = f"engine {entry.name} of {entry.package}"
    try:
        factory: Any = importlib.import_module(module)
        for part in attribute.split("."):
            factory = getattr(factory, part)
        return PluginEngine(factory(options), subject)
    except JobmeterError:
        raise
    except Exception as error:  # noqa: BLE001 - it is not our code
        raise UsageError(f"{subject} cannot be used: {in_words(error)}") from None
    except SystemExit:
        raise UsageError(f"{subject} cannot be used: it called sys.exit while it was loaded") from None


class PluginEngine:
    """An engine of another package. Its exceptions become errors of one line."""

    def __init__(self, engine: Any, subject: str) -> None:
        """Raises UsageError if the engine lacks a part of the contract."""
        missing = [name for name in _METHODS if not callable(getattr(engine, name, None))]
        if missing:
            raise UsageError(f"{subject} cannot be used: it has no method {missing[0]!r}")
        if not isinstance(getattr(engine, "capabilities", None), Capabilities):
            raise UsageError(f"{subject} cannot be used: its capabilities are not a Capabilities object")
        self.options: Sequence[EngineOption] = tuple(getattr(engine, "options", ()))
        self.capabilities: Capabilities = engine.capabilities
        self._engine: Engine = engine
        self._subject = subject

    def check(self, container_runtimes: Collection[str] = ()) -> None:
        self._call(self._engine.check, container_runtimes)

    def capacity(self) -> Capacity:
        capacity: Capacity = self._call(self._engine.capacity)
        return capacity

    def open(self, receiver: Receiver) -> None:
        self._call(self._engine.open, receiver)

    def recover(self, tasks: Sequence[LeftTask]) -> Recovered:
        recovered: Recovered = self._call(self._engine.recover, tasks)
        return recovered

    def start(self, task: Task) -> None:
        self._call(self._engine.start, task)

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        self._call(self._engine.cancel, number, at_once=at_once)

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        try:
            return self._engine.levels()
        except Exception:  # noqa: BLE001 - the display works without levels
            return {}

    def close(self) -> None:
        self._call(self._engine.close)

    def _call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except JobmeterError:
            raise
        except Exception as error:  # noqa: BLE001 - it is not our code
            raise LaunchError(f"{self._subject} failed: {in_words(error)}") from None
