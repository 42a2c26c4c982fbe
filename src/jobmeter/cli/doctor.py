"""`jobmeter doctor`: what this machine allows, what each missing source would need, and how to get it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from jobmeter import __version__
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import print_json, print_line
from jobmeter.cli.shared.sentences import print_sentences
from jobmeter.collectors import availability, load_all
from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.group import create_group
from jobmeter.kernel.machine import THIS_MACHINE, cpu_count
from jobmeter.kernel.perf import open_event, paranoid_level
from jobmeter.launch.spawn import has_compiled_shepherd
from jobmeter.settings import Configuration
from jobmeter.store_access import others_can_read, sharing_group

if TYPE_CHECKING:
    from jobmeter.launch.container.leftovers import RuntimeCheck


class Diagnosis(NamedTuple):
    """The result of one check."""

    subject: str
    good: bool
    says: str
    advice: str = ""


def main(arguments: list[str]) -> int:
    parser = Parser("doctor", "Show what this machine allows jobmeter to measure, and how to get what is missing.")
    parser.add_argument("--json", action="store_true", help="print an array of objects")
    parser.add_argument("--clean", action="store_true", help="remove containers and cgroups that killed runs left")
    options = parser.parse_args(arguments)
    if options.clean:
        from jobmeter.cli.doctor_clean import clean

        return clean(as_json=options.json)
    diagnoses = examine()
    if options.json:
        print_json([diagnosis._asdict() for diagnosis in diagnoses])
        return 0
    system = os.uname()
    python = sys.version.split()[0]
    print_line(f"jobmeter {__version__}, Python {python}, {system.sysname} {system.release}, {cpu_count()} CPUs")
    subjects = max(len(diagnosis.subject) for diagnosis in diagnoses)
    for diagnosis in diagnoses:
        before = f"  {'ok' if diagnosis.good else '--'}  {diagnosis.subject:<{subjects}}  "
        print_sentences([before + diagnosis.says], indent=len(before) - 2)
        if diagnosis.advice:
            print_sentences([f"{'':{len(before)}}→ {diagnosis.advice}"])
    return 0


def examine() -> list[Diagnosis]:
    """Check everything that decides how good the figures will be."""
    config_faults: list[str] = []
    configuration = Configuration(config_faults.append)
    store = configuration.resolve("store")
    diagnoses = [_cgroup(), _perf(), _hardware_counters(), _shepherd(), _store(store)]
    examined = {"cgroup", "perf", "container"}
    unusable: list[str] = []
    for collector in load_all(unusable.append):
        if collector.name not in examined:
            why = availability(collector)
            diagnoses.append(Diagnosis(collector.name, why is None, why or "available"))
    diagnoses += [Diagnosis("plug-in", False, fault.removeprefix("plug-in ")) for fault in unusable]
    diagnoses += _engines()
    diagnoses += _container_runtimes()
    diagnoses += [Diagnosis("config", True, path) for path, _ in configuration.files()]
    diagnoses += [Diagnosis("config", False, fault) for fault in config_faults]
    return diagnoses


def _cgroup() -> Diagnosis:
    try:
        group = create_group(THIS_MACHINE, "doctor")
    except NoData as reason:
        problem, _, remedy = str(reason).partition(". ")
        return Diagnosis(
            "cgroup", False, f"no group of the job's own: {problem}",
            f"{remedy} Without it memory peaks are sampled, not exact.",
        )  # fmt: skip
    says = f"v{group.version}, a job gets {group.path.rpartition('/')[0]}/…: exact CPU time and memory peak"
    peak = group.memory_peak()
    group.remove()
    if peak is None:
        return Diagnosis("cgroup", True, says, "memory.peak needs Linux 5.19; here the peak is sampled.")
    return Diagnosis("cgroup", True, says)


def _perf() -> Diagnosis:
    level = paranoid_level(THIS_MACHINE)
    try:
        event = open_event("task_clock", os.getpid())
    except NoData as reason:
        advice = "sysctl kernel.perf_event_paranoid=2 (as root) allows ordinary users to count their own jobs."
        return Diagnosis("perf", False, f"{reason} (kernel.perf_event_paranoid is {level})", advice)
    event.close()
    kernel = "user space alone for page faults" if event.user_only else "kernel included"
    return Diagnosis("perf", True, f"CPU time of every descendant, exact ({kernel}; perf_event_paranoid is {level})")


def _hardware_counters() -> Diagnosis:
    try:
        open_event("instructions", os.getpid()).close()
    except NoData as reason:
        return Diagnosis("counters", False, f"no instructions or cycles: {reason}")
    return Diagnosis("counters", True, "instructions and cycles")


def _shepherd() -> Diagnosis:
    if has_compiled_shepherd():
        return Diagnosis("launcher", True, "compiled: the launcher's size never shows in a job's memory")
    return Diagnosis("launcher", True, f"in Python ({os.uname().machine}): memory below about 12 MiB is not reported")


def _engines() -> list[Diagnosis]:
    """Check the engines, on which the jobs of a workflow can run."""
    from jobmeter.engines import survey_engines

    return [Diagnosis(f"engine {report.name}", report.good, report.says) for report in survey_engines()]


def _container_runtimes() -> list[Diagnosis]:
    """Check the container runtimes, and find the containers that killed runs left there."""
    from jobmeter.launch.container.leftovers import check_runtimes

    return [_container_runtime(check) for check in check_runtimes(THIS_MACHINE)]


def _container_runtime(check: RuntimeCheck) -> Diagnosis:
    if check.why_not is not None:
        return Diagnosis(check.runtime, False, check.why_not)
    if check.leftovers:
        count = "a container" if len(check.leftovers) == 1 else f"{len(check.leftovers)} containers"
        problem = f"{check.description}; {count} left by killed runs"
        return Diagnosis(check.runtime, False, problem, "jobmeter doctor --clean")
    return Diagnosis(check.runtime, True, check.description)


def _store(store: str) -> Diagnosis:
    parent = store
    while not os.path.exists(parent):
        parent = os.path.dirname(parent)
    if os.path.isdir(parent) and os.access(parent, os.W_OK):
        if (group := sharing_group(store)) is not None:
            return Diagnosis("store", True, f"{store}, shared with the members of group {group}")
        if others_can_read(store):
            return Diagnosis("store", False, f"{store}: other users can read it", f"chmod -R go= {store}")
        return Diagnosis("store", True, store)
    return Diagnosis("store", False, f"{store}: cannot be written", "Name another with --store or JOBMETER_STORE.")
