"""The vocabulary: what a measurement, a requirement and an outcome are.

Values here are tuples, not dataclasses: importing `dataclasses` costs the start
of every `jobmeter run` more than the whole launch of its job.
"""

from __future__ import annotations

from enum import Enum

from jobmeter.light_typing import NamedTuple, Union


class Kind(str, Enum):
    """What sort of quantity it is, and so what can be said of it over a run."""

    GAUGE = "gauge"  # goes up and down: peak, mean, minimum, p95
    COUNTER = "counter"  # only grows: total
    LABEL = "label"  # text: last, distinct
    CATEGORY = "category"  # one of a few: share of samples in each


class Gauge(str, Enum):
    """Which time a reading of a gauge stands for."""

    LEVEL = "level"  # from this reading to the next; none after the job has ended
    RATE = "rate"  # from the reading before to this one
    MARK = "mark"  # from the start of the job: a high-water mark, which has a peak and no mean


class Across(str, Enum):
    """How the values of sibling processes combine at one instant."""

    SUM = "sum"
    MAX = "max"
    TALLY = "tally"
    LAST = "last"


class Term(str, Enum):
    """A word of the run record, with its meaning."""

    _value_: str
    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Term:  # the default is for `Quality("exact")`
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    def __str__(self) -> str:
        return str.__str__(self)  # else Python 3.10 and 3.12 format a member differently


class Quality(Term):
    """How far a figure can be trusted."""

    EXACT = "exact", "Counted from the first to the last instruction of the job."
    SAMPLED = "sampled", "Read at moments; between them it may have been higher."
    AT_LEAST = "at least", "Possibly incomplete: the true figure is this or more."
    ESTIMATED = "estimated", "Computed from what the hardware is rated for, not measured."
    SHARED = "shared", "Counted with other work of the same process at the same time: the true figure is this or less."


class Status(Term):
    """How a run ended, or that it has not ended."""

    COMPLETED = "completed", "It ended by itself with exit code 0, or its exit code is unknown: it was not our child."
    FAILED = "failed", "It ended by itself with another exit code, or did not make all its outputs, or could not start."
    KILLED = "killed", "A signal ended it that jobmeter neither sent nor passed on."
    TIMEOUT = "timeout", "It was ended at its runtime limit, by jobmeter or by the task queue that it is of."
    OOM = "oom", "It ran out of memory: the kernel's OOM killer ended it, or jobmeter did at its memory limit."
    CANCELLED = "cancelled", "It was ended on request, by jobmeter, its task queue or a signal that jobmeter passed on."
    DETACHED = "detached", "Measuring was stopped and the job went on."
    RUNNING = "running", "It is still being measured."
    LOST = "lost", "Its end is unknown, for example because jobmeter was killed; the figures are those until then."


class Measurement(NamedTuple):
    """A described quantity. Everything that shows it follows from this description."""

    key: str
    unit: str  # bytes, seconds, percent (100 = one core), count, joules, watts, celsius, text
    kind: Kind
    across: Across
    quality: Quality
    help: str
    gauge: Gauge = Gauge.LEVEL  # of a gauge only

    def described(self) -> dict[str, str]:
        """The description as it stands in journals, so that old records stay readable."""
        description = {
            "unit": self.unit,
            "kind": self.kind.value,
            "across": self.across.value,
            "quality": self.quality.value,
            "help": self.help,
        }
        if self.kind is Kind.GAUGE:
            description["gauge"] = self.gauge.value
        return description


Number = Union[int, float]
Value = Union[int, float, str, dict[str, float]]
"""One value for the whole job: a number, a text, or a tally of categories."""


OWN_SOURCE = "jobmeter"
"""The source of a run that jobmeter measured itself. The source of an imported run is the tool that recorded it."""


class Requirement(NamedTuple):
    """What was requested; `None` is "not requested"."""

    cpus: float | None = None
    memory_bytes: int | None = None
    runtime_seconds: float | None = None
    gpus: int | None = None

    def requested(self) -> dict[str, Number]:
        return {name: value for name, value in self._asdict().items() if value is not None}


class Outcome(NamedTuple):
    """How a run ended."""

    status: Status
    exit_code: int | None = None
    signal: int | None = None

    @property
    def shell_code(self) -> int:
        """The exit code a shell would show: the job's own, or 128 + its signal."""
        if self.signal is not None:
            return 128 + self.signal
        # Unknown: the process that reports the exit code was killed. That must not look like success.
        return 125 if self.exit_code is None else self.exit_code


def workflow_id(name: str) -> str:
    """The id of a workflow of this name, as used in paths and on command lines: `ml-training-pipeline`.

    Names that differ only in case and punctuation are one workflow.
    """
    words = "".join(letter if letter.isalnum() else " " for letter in name.lower()).split()
    return "-".join(words)[:80] or "workflow"
