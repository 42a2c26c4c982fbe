"""`jobmeter doctor`: what this machine allows, what each missing source would need, and how to get it."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from jobmeter import __version__
from jobmeter.cli.shared.options import Parser
from jobmeter.collectors import availability, load_all
from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.group import create_group
from jobmeter.kernel.machine import THIS_MACHINE, cpu_count
from jobmeter.kernel.perf import open_event, paranoid_level
from jobmeter.launch.spawn import has_compiled_shepherd
from jobmeter.settings import config_files, resolve

if TYPE_CHECKING:
    from jobmeter.launch.container.leftovers import Survey


class Finding(NamedTuple):
    """One thing that was looked at."""

    subject: str
    good: bool
    says: str
    advice: str = ""


def main(arguments: list[str]) -> int:
    parser = Parser("doctor", "Tell what this machine allows jobmeter to measure, and how to get what is missing.")
    parser.add_argument("--json", action="store_true", help="print an array of objects")
    parser.add_argument("--clean", action="store_true", help="remove containers and cgroups that killed runs left")
    options = parser.parse_args(arguments)
    if options.clean:
        from jobmeter.cli.doctor_clean import clean

        return clean(as_json=options.json)
    findings = examine()
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
        return 0
    system = os.uname()
    python = sys.version.split()[0]
    print(f"jobmeter {__version__}, Python {python}, {system.sysname} {system.release}, {cpu_count()} CPUs")
    for finding in findings:
        print(f"  {'ok ' if finding.good else '-- '} {finding.subject:<12} {finding.says}")
        if finding.advice:
            print(f"{'':19}→ {finding.advice}")
    return 0


def examine() -> list[Finding]:
    """Look at everything that decides how good the figures will be."""
    findings = [_cgroup(), _perf(), _hardware_counters(), _shepherd(), _store()]
    examined = {"cgroup", "perf", "container"}
    unusable: list[str] = []
    for collector in load_all(unusable.append):
        if collector.name not in examined:
            why = availability(collector)
            findings.append(Finding(collector.name, why is None, why or "available"))
    findings += [Finding("plug-in", False, fault.removeprefix("plug-in ")) for fault in unusable]
    findings += _engines()
    findings += _container_runtimes()
    findings += [Finding("config", True, path) for path in config_files()]
    return findings


def _cgroup() -> Finding:
    try:
        group = create_group(THIS_MACHINE, "doctor")
    except NoData as reason:
        what, _, how = str(reason).partition(". ")
        return Finding(
            "cgroup", False, f"no group of the job's own: {what}",
            f"{how} Without it memory peaks are sampled, not exact.",
        )  # fmt: skip
    says = f"v{group.version}, a job gets {group.path.rpartition('/')[0]}/…: exact CPU time and memory peak"
    peak = group.memory_peak()
    group.remove()
    if peak is None:
        return Finding("cgroup", True, says, "memory.peak needs Linux 5.19; here the peak is sampled.")
    return Finding("cgroup", True, says)


def _perf() -> Finding:
    level = paranoid_level(THIS_MACHINE)
    try:
        event = open_event("task_clock", os.getpid())
    except NoData as reason:
        advice = "sysctl kernel.perf_event_paranoid=2 (as root) lets ordinary users count their own jobs."
        return Finding("perf", False, f"{reason} (kernel.perf_event_paranoid is {level})", advice)
    event.close()
    kernel = "user space alone for page faults" if event.user_only else "kernel included"
    return Finding("perf", True, f"CPU time of every descendant, exact ({kernel}; perf_event_paranoid is {level})")


def _hardware_counters() -> Finding:
    try:
        open_event("instructions", os.getpid()).close()
    except NoData as reason:
        return Finding("counters", False, f"no instructions or cycles: {reason}")
    return Finding("counters", True, "instructions and cycles")


def _shepherd() -> Finding:
    if has_compiled_shepherd():
        return Finding("launcher", True, "compiled: the launcher's size never shows in a job's memory")
    return Finding("launcher", True, f"in Python ({os.uname().machine}): memory below about 12 MiB is not told")


def _engines() -> list[Finding]:
    """Where the jobs of a workflow can run."""
    from jobmeter.engines import survey_engines

    return [Finding(f"engine {report.name}", report.good, report.says) for report in survey_engines()]


def _container_runtimes() -> list[Finding]:
    """The container runtimes that answer, and what killed runs left there."""
    from jobmeter.launch.container.leftovers import survey

    return [_container_runtime(seen) for seen in survey(THIS_MACHINE)]


def _container_runtime(seen: Survey) -> Finding:
    if seen.why_not is not None:
        return Finding(seen.engine, False, seen.why_not)
    if seen.left:
        count = "a container" if len(seen.left) == 1 else f"{len(seen.left)} containers"
        return Finding(seen.engine, False, f"{seen.says}; {count} left by killed runs", "jobmeter doctor --clean")
    return Finding(seen.engine, True, seen.says)


def _store() -> Finding:
    store = resolve("store", None)
    parent = store
    while not os.path.exists(parent):
        parent = os.path.dirname(parent)
    if os.path.isdir(parent) and os.access(parent, os.W_OK):
        return Finding("store", True, store)
    return Finding("store", False, f"{store}: cannot be written", "Name another place with --store or JOBMETER_STORE.")
