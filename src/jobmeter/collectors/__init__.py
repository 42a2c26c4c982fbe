"""The sources of measurements, and which of them a run uses."""

from __future__ import annotations

import importlib
from typing import NamedTuple

from jobmeter.collectors.contract import Collector
from jobmeter.errors import NoData, UsageError
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.model import Measurement

BUILTIN = {
    "cgroup": "jobmeter.collectors.cgroup:CgroupCollector",
    "perf": "jobmeter.collectors.perf:PerfCollector",
    "proc": "jobmeter.collectors.proc:ProcCollector",
    "rusage": "jobmeter.collectors.rusage:RusageCollector",
    "container": "jobmeter.collectors.container:ContainerCollector",
    "netns": "jobmeter.collectors.netns:NetnsCollector",
    "host": "jobmeter.collectors.host:HostCollector",
    "ps": "jobmeter.collectors.ps:PsCollector",
    "psutil": "jobmeter.collectors.psutil:PsutilCollector",
}
"""Name → class. Imported when used: `run` pays for what it measures."""

ENTRY_POINTS = "jobmeter.collectors"
"""Packages that add a collector name its class in this entry point group."""

_USUAL = ("cgroup", "perf", "proc", "rusage")
_PORTABLE = ("psutil", "rusage")  # no /proc: macOS and the like


class Selected(NamedTuple):
    """A collector and the keys that are wanted of it."""

    collector: Collector
    wanted: frozenset[str]

    def measurements(self) -> list[Measurement]:
        return [m for m in self.collector.measurements if m.key in self.wanted]


def load(name: str) -> Collector:
    module, _, attribute = BUILTIN[name].partition(":")
    collector: Collector = getattr(importlib.import_module(module), attribute)()
    return collector


def load_all() -> list[Collector]:
    """Every collector, built in or installed beside."""
    from importlib.metadata import entry_points

    return [*map(load, BUILTIN), *(entry.load()() for entry in entry_points(group=ENTRY_POINTS))]


def select(patterns: list[str] | None, machine: Machine = THIS_MACHINE) -> list[Selected]:
    """The collectors for a run: the usual ones, or those of the keys, globs and `all` in `patterns`.

    None at all for `none`: then time and outcome alone are known. UsageError, naming the nearest key, for a pattern
    that means nothing.
    """
    if not patterns:
        names = _USUAL if machine.has_proc() else _PORTABLE
        return [Selected(collector, collector.default) for collector in map(load, names)]
    if patterns == ["none"]:
        return []
    wanted: set[str] = set()
    collectors = load_all()
    keys = [m.key for collector in collectors for m in collector.measurements]
    for pattern in patterns:
        wanted |= _matching(pattern, keys, collectors)
    selected = [
        Selected(collector, frozenset(m.key for m in collector.measurements if m.key in wanted))
        for collector in collectors
    ]
    return [choice for choice in selected if choice.wanted]


def _matching(pattern: str, keys: list[str], collectors: list[Collector]) -> set[str]:
    import difflib
    import fnmatch

    if pattern == "all":
        return set(keys)
    if pattern == "default":
        return {key for collector in collectors if collector.name in _USUAL for key in collector.default}
    matches = set(fnmatch.filter(keys, pattern))
    if not matches:
        near = difflib.get_close_matches(pattern, keys, n=1, cutoff=0.0)
        raise UsageError(
            f"--measurements: there is no {pattern!r}. Did you mean {near[0]!r}? `jobmeter measurements` lists all."
        )
    return matches


def unavailable(collector: Collector, machine: Machine = THIS_MACHINE) -> dict[str, str]:
    """The keys that cannot be measured here, each with the reason."""
    why = availability(collector, machine)
    if why is not None:
        return {m.key: why for m in collector.measurements}
    missing: dict[str, str] = collector.missing(machine) if hasattr(collector, "missing") else {}
    return missing


def availability(collector: Collector, machine: Machine = THIS_MACHINE) -> str | None:
    """Why nothing can be measured with it here; None when it can."""
    try:
        collector.check(machine)
    except NoData as reason:
        return str(reason)
    return None
