"""The types of a run record, and one line about each field. The JSON Schema is generated from them.

Absent means not measured, or not known; a field is never null for that. Readers ignore fields that they do not know.

Only the schema and the checks that are made from it need this module at run time. Elsewhere it is imported under
TYPE_CHECKING: making these classes takes longer than launching a job. Python 3.10 has no `NotRequired`, so the fields
that may be absent are in a subclass with `total=False`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, TypedDict, Union

from jobmeter.model import Across, Gauge, Kind, Quality, Status


class Keyword(NamedTuple):
    """A keyword of JSON Schema for a field. Beside it `Annotated` has a description, or the terms that are allowed."""

    name: str
    value: Any


LARGEST = 1e30
"""No number is larger, either way: sums and squares of such numbers are finite, too."""
LARGEST_STORED = 2**63 - 1
"""No whole number is larger: SQL stores none."""
_NOT_NEGATIVE = Keyword("minimum", 0)
_STORED = Keyword("maximum", LARGEST_STORED)

Seconds = Annotated[float, _NOT_NEGATIVE, Keyword("maximum", 1e11)]
Amount = Annotated[float, _NOT_NEGATIVE, _STORED]
Bytes = Annotated[int, _NOT_NEGATIVE, _STORED]
Count = Annotated[int, _NOT_NEGATIVE, _STORED]
Whole = Annotated[int, Keyword("minimum", -LARGEST_STORED), _STORED]
WholeOrNull = Union[Whole, None]
MOMENT = r"^(19|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?Z$"
Timestamp = Annotated[
    str,
    Keyword("format", "date-time"),
    Keyword("pattern", MOMENT),
]
Key = Annotated[str, Keyword("minLength", 1)]
Labels = dict[str, str]


class Host(TypedDict, total=False):
    """The machine on which the job ran."""

    name: Annotated[str, "Its host name."]
    cpus: Annotated[Count, "CPUs that a job could use there."]
    memory_bytes: Annotated[Bytes, "Its memory."]
    kernel: Annotated[str, "Name and release of its kernel."]


class OutcomeRecord(TypedDict):
    """How the run ended."""

    status: Annotated[str, "How it ended, in one word.", Status]
    exit_code: Annotated[
        Union[Whole, None], "The exit code of the job; null if a signal ended it, or if it is unknown."
    ]
    signal: Annotated[WholeOrNull, "The number of the signal that ended the job; null if none did."]


class RequirementRecord(TypedDict, total=False):
    """What was requested; absent is "not requested"."""

    cpus: Annotated[Amount, "CPUs."]
    memory_bytes: Annotated[Bytes, "Memory."]
    runtime_seconds: Annotated[Seconds, "Wall time."]
    gpus: Annotated[Count, "GPUs."]


Figure = TypedDict(
    "Figure",
    {
        "value": Annotated[Amount, "The figure, in the unit that its name says."],
        "from": Annotated[Key, "The measurement that it is taken from."],
        "quality": Annotated[str, "How far it can be trusted.", Quality],
    },
)
Figure.__doc__ = "A headline figure."


class _GaugeAlways(TypedDict):
    unit: Annotated[str, "Its unit."]
    kind: Literal["gauge"]


class GaugeSummary(_GaugeAlways, total=False):
    """A level over the run. A peak that the kernel keeps has no mean."""

    peak: Annotated[float, "The highest value."]
    mean: Annotated[float, "The mean over time."]
    min: Annotated[float, "The lowest value."]
    p95: Annotated[float, "95 % of the time it was no higher."]


class CounterSummary(TypedDict):
    """A quantity that only grows."""

    unit: Annotated[str, "Its unit."]
    kind: Literal["counter"]
    total: Annotated[float, _NOT_NEGATIVE, "What it grew by during the run."]


class LabelSummary(TypedDict):
    """A text."""

    unit: Annotated[str, "Its unit: text."]
    kind: Literal["label"]
    last: Annotated[str, "The last one."]
    distinct: Annotated[list[str], "The different ones, in the order in which they were first read; not all if many."]


class CategorySummary(TypedDict):
    """One of a few values."""

    unit: Annotated[str, "Its unit: text."]
    kind: Literal["category"]
    share: Annotated[dict[str, Annotated[float, _NOT_NEGATIVE, Keyword("maximum", 1)]], "The share of each value."]


Summary = Union[GaugeSummary, CounterSummary, LabelSummary, CategorySummary]


class ProcessEntry(TypedDict, total=False):
    """One process of the job, or several that are added up."""

    pid: Annotated[Count, "Its process id; absent where several are added up."]
    processes: Annotated[Count, "How many processes are added up here."]
    cmd: Annotated[str, "Its command line."]
    cpu_seconds: Annotated[Seconds, "Its CPU time while it was measured."]
    rss_peak_bytes: Annotated[Bytes, "The most resident memory that it had at a sample."]
    seconds: Annotated[Seconds, "How long it lived while it was measured."]


class ThreadEntry(TypedDict, total=False):
    """One thread of the job, or several that are added up."""

    pid: Annotated[Count, "The process that it was of."]
    tid: Annotated[Count, "Its own number; absent where several are added up."]
    threads: Annotated[Count, "How many threads are added up here, as far as they were seen."]
    name: Annotated[str, "Its name."]
    cpu_seconds: Annotated[Seconds, "Its CPU time while it was measured."]
    run_delay_seconds: Annotated[Seconds, "How long it was ready to run and had no CPU."]
    cores: Annotated[list[Count], "The cores that it was found on."]
    nodes: Annotated[list[Count], "The NUMA nodes of those."]
    migrations: Annotated[Count, "How often it was found on another core than before."]


class DeviceProcess(TypedDict, total=False):
    """One process of the job on a device."""

    pid: Annotated[Count, "Its process id."]
    memory_peak_bytes: Annotated[Bytes, "The most memory of the device that it had at a sample."]


class _DeviceAlways(TypedDict):
    kind: Annotated[Literal["gpu"], "What it is."]
    source: Annotated[str, "The source that reported it: nvml, rocm."]
    index: Annotated[Count, "Its number on the machine, as its driver counts."]


class DeviceEntry(_DeviceAlways, total=False):
    """One GPU that the job used or was given, or one instance of a GPU that is divided."""

    uuid: Annotated[str, "Its own name, which no other device has."]
    name: Annotated[str, "Its model."]
    instance: Annotated[Count, "The number of the instance, of a GPU that is divided (MIG)."]
    memory_bytes: Annotated[Bytes, "The memory it has."]
    memory_peak_bytes: Annotated[Bytes, "The most of its memory that the job had at a sample."]
    busy_seconds: Annotated[Seconds, "How long it worked for the job."]
    energy_joules: Annotated[Amount, "The energy it used for the job."]
    temperature_peak_celsius: Annotated[float, "How hot it was at most."]
    throttled_seconds: Annotated[Seconds, "How long its driver slowed it down."]
    throttled_by: Annotated[list[str], "Why: heat, power cap, power brake, hardware."]
    processes: Annotated[list[DeviceProcess], "The processes of the job that were on it."]


class _PeakProcessAlways(TypedDict):
    cmd: Annotated[str, "Its command line."]
    bytes: Annotated[Bytes, "The memory that it held; what it shares counted in part, where that is known."]


class PeakProcess(_PeakProcessAlways, total=False):
    """One process at a high of memory, or several that are added up."""

    pid: Annotated[Count, "Its process id; absent where several are added up."]
    processes: Annotated[Count, "How many processes are added up here."]
    anonymous_bytes: Annotated[Bytes, "Heaps, stacks, what no file backs."]
    file_bytes: Annotated[Bytes, "Mapped files: programs, libraries."]
    shared_bytes: Annotated[Bytes, "Shared memory."]


class _PeakAlways(TypedDict):
    seconds: Annotated[Seconds, "When, since the run began."]
    bytes: Annotated[Bytes, "What the job held."]
    processes: Annotated[list[PeakProcess], "Who held it, the largest first; the last entry adds up the others."]


class PeakEntry(_PeakAlways, total=False):
    """A moment at which the job had more memory than ever before."""

    kind: Annotated[Literal["gpu"], "Of GPU memory, on all GPUs together; absent: of the memory of the machine."]
    anonymous_bytes: Annotated[Bytes, "Heaps, stacks, what no file backs."]
    file_bytes: Annotated[Bytes, "Mapped files; of a cgroup, page cache, which is not part of what the job held."]
    shared_bytes: Annotated[Bytes, "Shared memory."]
    kernel_bytes: Annotated[Bytes, "Of a cgroup: what the kernel used for the job, and its shared memory."]


class _CollectorAlways(TypedDict):
    available: Annotated[bool, "Whether it could be read."]


class CollectorState(_CollectorAlways, total=False):
    """What became of one source of measurements."""

    why: Annotated[str, "Why it was not available."]
    failed: Annotated[str, "What failed while it was read; its figures may be incomplete."]


class ContainerInfo(TypedDict, total=False):
    """The container in which the job ran."""

    image: Annotated[str, "Its image."]
    engine: Annotated[str, "docker or podman."]
    engine_version: Annotated[str, "The version of that."]
    id: Annotated[str, "Its id there."]
    startup_seconds: Annotated[Seconds, "From the request to start it until it ran."]


Imported = TypedDict(
    "Imported",
    {
        "from": Annotated[str, "The tool that recorded the run."],
        "where": Annotated[str, "The file, and the line in it."],
        "times_from": Annotated[str, "Where start and end are taken from, if the tool does not record them."],
    },
    total=False,
)
Imported.__doc__ = "Where a run of another tool was imported from. What else that tool records of a run is here, too."


class Provenance(TypedDict, total=False):
    """How the figures were made."""

    version: Annotated[str, "The version of jobmeter that made the record."]
    selected: Annotated[list[Key], "The measurements that were selected."]
    collectors: Annotated[dict[str, CollectorState], "The sources that were selected, by name."]
    samples: Annotated[Count, "How often the job was sampled."]
    windows: Annotated[Count, "How many windows the journal has; of a run without an end."]
    interval_seconds: Annotated[Seconds, "The time between two samples that was requested."]
    interval_reached_seconds: Annotated[Seconds, "The time between two samples that was reached."]
    meter_cpu_seconds: Annotated[Seconds, "CPU time that jobmeter itself used for this run until it made the record."]
    failed: Annotated[str, "Why there are no figures: a failure of jobmeter itself."]
    left_running: Annotated[Count, "Processes of the job that went on when the run ended, not measured to their end."]
    shepherd_killed: Annotated[bool, "The job's own parent process was killed; jobmeter followed the job without it."]
    missing_outputs: Annotated[list[str], "Files that the job was to make and did not."]
    raised: Annotated[str, "The type of the exception that ended a block of a Python program."]
    container: ContainerInfo
    cgroup_parent: Annotated[str, "Why the container had no cgroup of the run's own above it."]
    imported: Imported


class FindingRecord(TypedDict):
    """Something worth reporting of the run."""

    kind: Annotated[str, "What it is about: oom, over_memory, under_cpus, growth and the like."]
    severity: Annotated[Literal["problem", "hint"], "Whether it is a problem, or worth a thought."]
    text: Annotated[str, "The same in words."]


class _MetricAlways(TypedDict):
    value: Annotated[float, "The last value."]


class MetricRecord(_MetricAlways, total=False):
    """A number that the job reported of itself, as the loss of a model. Several values have their times."""

    seconds: Annotated[list[Seconds], "When each value was reported, since the start."]
    values: Annotated[list[float], "The values, in that order; of very many some are left out."]


class WorkflowPart(TypedDict, total=False):
    """Which job of which workflow it was."""

    id: Annotated[str, "The workflow, as in paths and on command lines."]
    name: Annotated[str, "The workflow, as its spec names it."]
    run_id: Annotated[Count, "The number of the workflow's run."]
    job_id: Annotated[Count, "The number of the job in it."]
    step: Annotated[str, "The step of the spec that the job is of."]
    attempt: Annotated[Count, "1 for the first attempt at the job."]
    fingerprint: Annotated[str, "A digest of its command and inputs, by which `resume` sees that one changed."]


class _IdentityAlways(TypedDict):
    id: Annotated[str, "Of this run alone.", Keyword("pattern", "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
    name: Annotated[str, "The name of the job; runs of one job share it."]
    command: Annotated[
        list[str], "The command, word by word. A byte that is not UTF-8 is U+FFFD and its two hexadecimal digits."
    ]
    labels: Annotated[Labels, "Labels that people gave it."]
    requirement: RequirementRecord


class RunIdentity(_IdentityAlways, total=False):
    """What is known when a run begins."""

    cwd: Annotated[str, "The directory in which it ran; empty if it could not be read."]
    host: Host
    user: Annotated[str, "The user who ran it."]
    started: Annotated[Timestamp, "When it started, in UTC."]
    enforced: Annotated[list[str], "The requested resources that the kernel limited it to: cpus, memory."]
    workflow: WorkflowPart


class _RecordAlways(RunIdentity):
    schema: Annotated[Literal["jobmeter.run/1"], "The version of this format."]
    outcome: OutcomeRecord
    usage: Annotated[
        dict[str, Figure], "The headline figures: the best that is known, each with its source and quality."
    ]
    measurements: Annotated[dict[str, Summary], "Everything that was measured, by key."]
    processes: Annotated[list[ProcessEntry], "The processes that used most; the last entry adds up the others."]
    provenance: Provenance


class Record(_RecordAlways, total=False):
    """All that is known of one run of a job."""

    ended: Annotated[Timestamp, "When it ended, in UTC; of a detached run when measuring ended."]
    wall_seconds: Annotated[Seconds, "How long it took; of a run without an end how long it was measured."]
    metrics: Annotated[dict[str, MetricRecord], "What the job reported of itself, by name."]
    threads: Annotated[
        list[ThreadEntry], "With `--threads`: those that used most; the last entry has the rest of the CPU time."
    ]
    peaks: Annotated[list[PeakEntry], "The highs of memory, and who held it; the last is the peak."]
    devices: Annotated[list[DeviceEntry], "GPUs that the job used or was given."]
    findings: Annotated[
        list[FindingRecord], "What stands out. Of the version that wrote this, and not stored: absent in journals."
    ]


class _DescriptionAlways(TypedDict):
    unit: str
    kind: Annotated[str, Kind]


class Description(_DescriptionAlways, total=False):
    """The description of a measurement, as journals hold it and `record.validate` checks it."""

    across: Annotated[str, Across]
    quality: Annotated[str, Quality]
    help: str
    gauge: Annotated[str, Gauge]


Described = dict[str, dict[str, str]]
"""Key → the description of the measurement, in code that reads some fields of it alone."""

_Pid = Annotated[int, Keyword("minimum", 1), Keyword("maximum", 2**31 - 1)]


class Writer(TypedDict, total=False):
    """Who writes a journal, so that readers can check whether writer and job still run."""

    pid: _Pid
    start: Count  # when the process started, in clock ticks since boot, as for the two below
    root: _Pid
    root_start: Count
    job: _Pid
    job_start: Count
    group: str  # the job's cgroup
    host: str  # the machine on which the writer runs, where that is not the job's


class Header(RunIdentity, total=False):
    """The first line of a run in a journal. One read from a file may lack fields: see `RunIdentity`."""

    schema: str
    measurements: Described
    writer: Writer
