"""The sources of measurements, and which of them a run uses."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable

from jobmeter.collectors.contract import Collector, Source, abilities, collector_abilities
from jobmeter.errors import NoData
from jobmeter.kernel.hardware import present_hardware
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.light_typing import TYPE_CHECKING, NamedTuple
from jobmeter.model import Measurement

if TYPE_CHECKING:
    from jobmeter.collectors.plugins import Plugins

BUILTIN = {
    "cgroup": "jobmeter.collectors.cgroup:CgroupCollector",
    "perf": "jobmeter.collectors.perf:PerfCollector",
    "proc": "jobmeter.collectors.proc:ProcCollector",
    "rusage": "jobmeter.collectors.rusage:RusageCollector",
    "container": "jobmeter.collectors.container:ContainerCollector",
    "netns": "jobmeter.collectors.netns:NetnsCollector",
    "host": "jobmeter.collectors.host:HostCollector",
    "nvml": "jobmeter.collectors.nvml:NvmlCollector",
    "rocm": "jobmeter.collectors.rocm:RocmCollector",
    "drm": "jobmeter.collectors.drm:DrmCollector",
    "bpf": "jobmeter.collectors.bpf:BpfCollector",
    "tcp": "jobmeter.collectors.tcp:TcpCollector",
    "thread": "jobmeter.collectors.thread:ThreadCollector",
    "rapl": "jobmeter.collectors.rapl:RaplCollector",
    "tdp": "jobmeter.collectors.tdp:TdpCollector",
    "hwmon": "jobmeter.collectors.hwmon:HwmonCollector",
    "block": "jobmeter.collectors.block:BlockCollector",
    "ps": "jobmeter.collectors.ps:PsCollector",
    "psutil": "jobmeter.collectors.psutil:PsutilCollector",
}
"""Name → class. A class is imported when it is used: a run pays only for what it measures."""

_USUAL = ("cgroup", "perf", "proc", "rusage")
_PORTABLE = ("psutil", "rusage")  # no /proc: macOS and the like


class Selected(NamedTuple):
    """A collector, and which of its keys are selected."""

    collector: Collector
    wanted: frozenset[str]
    named: frozenset[str] = frozenset()  # requested by name: a job for which they cannot be measured is not run
    usual: frozenset[str] = frozenset()  # selected only because they are measured by default

    def measurements(self) -> list[Measurement]:
        return [m for m in self.collector.measurements if m.key in self.wanted]


def load(name: str) -> Collector:
    module, _, attribute = BUILTIN[name].partition(":")
    collector: Collector = getattr(importlib.import_module(module), attribute)()
    return collector


def load_builtin() -> list[Collector]:
    return list(map(load, BUILTIN))


def load_all(warn: Callable[[str], None] = lambda message: None) -> list[Collector]:
    """Every collector, built in or of another package. Calls `warn` for those that cannot be used."""
    from jobmeter.collectors.plugins import all_plugins

    plugins = all_plugins()
    for fault in plugins.faults:
        warn(fault)
    return [*load_builtin(), *plugins.collectors]


def load_default(machine: Machine, warn: Callable[[str], None], of_job: tuple[str, ...] = ()) -> list[Collector]:
    """The collectors that are used unless others are requested; `of_job` are those of a special kind of job."""
    if of_job:
        return list(map(load, of_job))
    plugins = default_plugins()
    for fault in plugins.faults if plugins is not None else ():
        warn(fault)
    names = (*_USUAL, *present_hardware(machine)) if machine.has_proc() else _PORTABLE
    return [*map(load, names), *(plugins.collectors if plugins is not None else ())]


def select(
    patterns: list[str] | None,
    machine: Machine = THIS_MACHINE,
    warn: Callable[[str], None] = lambda message: None,
    of_job: tuple[str, ...] = (),
) -> list[Selected]:
    """The collectors for a run: the usual ones, or those that `patterns` choose (`collectors.patterns`).

    `of_job` are the usual ones of a special kind of job.

    Raises UsageError, with the nearest key, if a pattern matches nothing. Calls `warn` for collectors of other
    packages that cannot be used.
    """
    if not patterns:
        return [Selected(each, each.default, usual=each.default) for each in load_default(machine, warn, of_job)]
    from jobmeter.collectors.patterns import select_by

    return select_by(patterns, machine, warn)


@functools.cache
def default_plugins() -> Plugins | None:
    """The collectors that packages called `jobmeter-…` switch on by default; None if there is no such package.

    Listing the entry points of every package takes as long as a whole run. Searching for a name in the
    folders takes a quarter of a millisecond.
    """
    folders: list[str] = []
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue  # it does not exist, or is a zip file
        # The folder of the package jobmeter itself begins with `jobmeter-`.
        folders += [f"{place or '.'}/{name}" for name in names if name[:9].lower() in ("jobmeter_", "jobmeter.")]
    folders = [folder for folder in folders if folder.endswith((".dist-info", ".egg-info"))]
    if not folders:
        return None
    from jobmeter.collectors.plugins import plugins_on_by_default

    return plugins_on_by_default(folders)


def unavailable(collector: Collector, machine: Machine = THIS_MACHINE, source: Source | None = None) -> dict[str, str]:
    """Key → reason, for keys that cannot be measured here; with `source`, of the job that it was opened for."""
    if source is not None and (missing_of_job := abilities(source).missing) is not None:
        return missing_of_job()
    why = availability(collector, machine)
    if why is not None:
        return {m.key: why for m in collector.measurements}
    missing = collector_abilities(collector).missing
    return missing(machine) if missing is not None else {}


def availability(collector: Collector, machine: Machine = THIS_MACHINE) -> str | None:
    """Why this collector can measure nothing here; None if it can."""
    try:
        collector.check(machine)
    except NoData as reason:
        return str(reason)
    return None
