"""Engines run the jobs of a workflow: on this machine, or through a scheduler that already runs.

To add an engine, write one file that implements `contract` and one line in BUILTIN; or, in another package, an entry
point in the group `jobmeter.engines`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.errors import JobmeterError, UsageError

if TYPE_CHECKING:
    from jobmeter.engines.contract import Engine

BUILTIN = {
    "local": "jobmeter.engines.local:LocalEngine",
    "celery": "jobmeter.engines.celery.engine:CeleryEngine",
    "ray": "jobmeter.engines.ray.engine:RayEngine",
}
"""Name → class, imported when used. The class is called with the values of the engine's options."""

DEFAULT = "local"


class EngineReport(NamedTuple):
    """Whether an engine can be used here."""

    name: str
    good: bool
    says: str


def load_engine(name: str, options: Mapping[str, str] = {}) -> Engine:
    """The engine of this name. Raises UsageError if there is none, or if it is broken."""
    if name in BUILTIN:
        module, _, attribute = BUILTIN[name].partition(":")
        engine: Engine = getattr(importlib.import_module(module), attribute)(options)
        return engine
    from jobmeter.engines.plugins import load_plugin, plugin_names

    plugins = plugin_names()
    if name in plugins:
        return load_plugin(plugins[name], options)
    from jobmeter.suggestion import suggest

    names = [*BUILTIN, *plugins]
    hint = suggest(name, names, f"There are: {', '.join(names)}.")
    raise UsageError(f"--engine: there is no engine {name!r}. {hint}")


def survey_engines() -> list[EngineReport]:
    """Every engine, built in or of another package, and whether it can be used here."""
    from jobmeter.engines.plugins import plugin_names

    reports, plugins = [], []
    try:
        plugins = list(plugin_names())
    except UsageError as reason:
        reports.append(EngineReport("plug-ins", False, str(reason)))
    for name in dict.fromkeys([*BUILTIN, *plugins]):
        try:
            engine = load_engine(name)
            engine.check()
            reports.append(EngineReport(name, True, _capacity_text(engine)))
        except JobmeterError as reason:
            reports.append(EngineReport(name, False, str(reason)))
    return reports


def _capacity_text(engine: Engine) -> str:
    from jobmeter.units import text

    capacity = engine.capacity()
    parts = [
        "" if capacity.slots is None else f"{capacity.slots} jobs at a time",
        "" if capacity.cpus is None else f"{capacity.cpus:g} cpus",
        "" if capacity.memory_bytes is None else text(capacity.memory_bytes, "bytes"),
        "" if not capacity.gpus else f"{capacity.gpus} gpus",
        "a queue of its own" if engine.capabilities.has_queue else "",
    ]
    return ", ".join(filter(None, parts)) or "available"
