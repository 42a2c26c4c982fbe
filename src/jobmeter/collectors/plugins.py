"""Finds the collectors of other packages, named by entry points in the group `jobmeter.collectors`."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from jobmeter.collectors.plugin_checks import Plugin, PluginFault, guarded, in_words
from jobmeter.errors import NoData

GROUP = "jobmeter.collectors"


class Entry(NamedTuple):
    """An entry point: its name, the module and attribute of the collector, and its package."""

    name: str
    value: str  # module:attribute
    package: str

    @property
    def may_be_default(self) -> bool:
        """Whether it is found without listing the entry points of every package (`default_plugins`)."""
        return self.package.lower().replace("-", "_").replace(".", "_").startswith("jobmeter_")


class Plugins(NamedTuple):
    """The collectors that can be used, and a message for each that cannot."""

    collectors: list[Plugin]
    faults: list[str]


@functools.cache
def all_plugins() -> Plugins:
    """Every collector of another package that is installed."""
    from importlib.metadata import entry_points

    try:
        entries = [Entry(e.name, e.value, e.dist.name if e.dist else "?") for e in entry_points(group=GROUP)]
    except Exception as error:  # noqa: BLE001 - the metadata of any package may be damaged
        return Plugins([], [f"the packages that are installed cannot be listed: {in_words(error)}"])
    return _load_each(entries)


def plugins_on_by_default(folders: Iterable[str]) -> Plugins:
    """The collectors that are on by default, of the packages with these `dist-info` folders."""
    by_package: dict[str, list[Entry]] = {}
    for folder in folders:
        package = os.path.basename(folder).partition("-")[0].removesuffix(".egg")
        try:
            with open(f"{folder}/entry_points.txt", encoding="utf-8") as file:
                # If a package is installed twice, the first counts, as for imports.
                by_package.setdefault(package, parse_entry_points(file.read(), package))
        except (OSError, ValueError):
            continue  # it has no entry points
    plugins = _load_each([entry for entries in by_package.values() for entry in entries])
    return plugins._replace(collectors=[plugin for plugin in plugins.collectors if plugin.on_by_default])


def parse_entry_points(content: str, package: str) -> list[Entry]:
    """The entries of the group `jobmeter.collectors` in an entry_points.txt."""
    entries, group = [], ""
    for line in content.splitlines():
        line = line.partition("#")[0].strip()
        name, equals, value = line.partition("=")
        if line.startswith("["):
            group = line.strip("[] ")
        elif group == GROUP and equals:
            entries.append(Entry(name.strip(), value.strip(), package))
    return entries


def _load_each(entries: list[Entry]) -> Plugins:
    plugins: list[Plugin] = []
    faults: list[str] = []
    # Sorted, for the same order on every machine: of two with the same name, the second is refused.
    for entry in sorted(entries, key=lambda entry: (not entry.may_be_default, entry.package, entry.name)):
        try:
            plugin = _load(entry)
            _check_unique(plugin, plugins)
            plugins.append(plugin)
        except (PluginFault, NoData) as fault:
            faults.append(f"plug-in {entry.name} of {entry.package} is left out: {fault}")
    return Plugins(plugins, faults)


def _load(entry: Entry) -> Plugin:
    module, _, attribute = entry.value.partition("[")[0].strip().partition(":")

    def load() -> Plugin:
        factory: Any = importlib.import_module(module)
        for part in attribute.split("."):
            factory = getattr(factory, part)
        return Plugin(factory(), may_be_default=entry.may_be_default)

    plugin: Plugin = guarded(load)
    return plugin


def _check_unique(plugin: Plugin, others: list[Plugin]) -> None:
    if any(plugin.name == other.name for other in others):
        raise PluginFault(f"another plug-in is called {plugin.name!r} too")
    declared = {m.key for other in others for m in other.measurements}
    for measurement in plugin.measurements:
        if measurement.key in declared:
            raise PluginFault(f"{measurement.key}: another plug-in measures a key of this name")
