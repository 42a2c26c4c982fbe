"""Numbers that the documentation states are those of the code."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from jobmeter.meter.schedule import peek_gap
from jobmeter.model import Quality
from jobmeter.session.measuring import USUAL
from jobmeter.settings import SETTINGS
from tests.running import ROOT

WORDS = {
    "half": 0.5, "a": 1, "an": 1, "one": 1, "once": 1, "twice": 2, "two": 2, "four": 4, "five": 5,
    "eight": 8, "ten": 10, "Ten": 10, "thirty": 30, "thousand": 1000,
}  # fmt: skip
MIB = 2.0**20


def constant(module: str, name: str, convert: Callable[[float], float] = float) -> Callable[[], float]:
    """The value of `jobmeter.MODULE.NAME`, in another unit if `convert` is given."""
    return lambda: convert(getattr(importlib.import_module(f"jobmeter.{module}"), name))


def entry(module: str, name: str, key: object, convert: Callable[[float], float] = float) -> Callable[[], float]:
    """The value of one key of a constant."""
    return lambda: convert(getattr(importlib.import_module(f"jobmeter.{module}"), name)[key])


def allowance(path: str, owner: str) -> Callable[[], float]:
    """Percent of the time that a class, or an attribute, of a collector may use."""
    source = Path(ROOT, "src", "jobmeter", path).read_text()
    match = re.search(rf"\b{owner}\b.*?Allowance\((?:share=)?([\d.]+)", source, re.DOTALL)
    assert match is not None, f"{path}: no allowance of {owner}"
    return lambda: 100 * float(match[1])


def percent(share: float) -> float:
    return 100 * share


def above_one(factor: float) -> float:
    return 100 * (factor - 1)


def milli(value: float) -> float:
    return 1000 * value


def micro(value: float) -> float:
    return 1e6 * value


Statement = tuple[str, Callable[[], float]]
"""A sentence with one number in it, as a pattern with a group for it, and the value in the code, in the unit of the
sentence."""

STATEMENTS: dict[str, tuple[Statement, ...]] = {
    "design.md": (
        (r"every (\S+) ms at first, then every", constant("meter.schedule", "SHORTEST_PEEK", milli)),
        (r"then every (\S+) % of the elapsed time", lambda: percent(peek_gap(1.0, ran=True))),
        (r"noticed at most (\S+) % late", lambda: percent(peek_gap(1.0, ran=False))),
        (r"and later every (\S+) s \(", lambda: peek_gap(1e6, ran=True)),
        (r"and later every \S+ s \((\S+) s while", lambda: peek_gap(1e6, ran=False)),
        (r"first sample comes (\S+) ms after the start", constant("meter.schedule", "FIRST", milli)),
        (r"a fine window ends every (\S+) ms at first", constant("meter.schedule", "FIRST_FINE", milli)),
        (r"at first, later after (\S+) % of the elapsed", constant("meter.schedule", "FINE_SHARE", percent)),
        (r"while the job runs after (\S+) % of the elapsed", constant("meter.schedule", "BUSY_SHARE", percent)),
        (r"else (\S+) second after the start", constant("meter.schedule", "FIRST_WINDOW")),
        (r"in gaps that double up to (\S+) s", lambda: USUAL.window),
        (r"windows last (\S+) % of the elapsed time", constant("meter.schedule", "LONG_SHARE", percent)),
        (r"its peeks cost: at most (\S+) % of the time", allowance("collectors/cgroup.py", "_peeks")),
        (r"its peeks cost: at most (\S+) % of the time", allowance("collectors/proc.py", "_peeks")),
        (r"readings take at most (\S+) % of the time", allowance("collectors/proc_memory.py", "Shares")),
        (
            r"10 to (\S+) ms per GiB",
            constant("collectors.proc_memory", "_SMAPS_SECONDS_PER_BYTE", lambda seconds: 1000 * seconds * 2**30),
        ),
        (r"rates are over (\S+) second or more", constant("collectors.rate", "SHORTEST_SPAN")),
        (r"so a rate needs (\S+) of them", constant("collectors.rate", "_TICKS_OF_A_RATE")),
        (
            r"gives a job its share every (\S+) ms",
            constant("kernel.cgroup.v2", "_CPU_PERIOD_US", lambda microseconds: microseconds / 1000),
        ),
        (r"some (\S+) µs for each task that begins", constant("collectors.perf_cost", "_OF_A_TASK", micro)),
        (r"(\S+) µs for each context switch", constant("collectors.perf_cost", "_OF_A_SWITCH", micro)),
        (
            r"(\S+) times a second at first, once a second later",
            constant("collectors.perf_cost", "_FIRST_GAP", lambda gap: 1 / gap),
        ),
        (r"at first, (\S+) a second later", constant("collectors.perf_cost", "_LONGEST_GAP")),
        (r"above (\S+) % twice in a row", constant("collectors.perf_cost", "_MOST", percent)),
        (r"or above (\S+) % once:", constant("collectors.perf_cost", "_MOST_AT_ONCE", percent)),
        (r"reports over (\S+) % and \S+ ms more is taken", constant("analyse.headline", "_MORE", above_one)),
        (r"reports over \S+ % and (\S+) ms more is taken", constant("analyse.headline", "TICK", milli)),
        (r"more is taken \(rusage: (\S+) ms", constant("analyse.headline", "_RUSAGE_LAG", milli)),
        (r"would be over (\S+) % too high is not used", constant("collectors.proc_memory", "_MOST_INFLATED", percent)),
        (r"A sample waits for it for (\S+) ms", constant("collectors.nvml", "_DEADLINE", milli)),
        (r"A new high is one by (\S+) %;", constant("collectors.proc_peaks", "_HIGHER", above_one)),
        (r"the (\S+) largest processes are noted", constant("collectors.proc_peaks", "_MOST_PROCESSES")),
        (r"One that is open after (\S+) ms becomes a session", constant("session.open_blocks", "_YOUNG", milli)),
    ),
    "check.md": (
        (r"over-use \((\S+) % above the request", constant("analyse.overuse", "LEAST_OVER")),
        (r"one second can contain one share more \((\S+) %\)", constant("analyse.overuse", "PEAK_OVER", above_one)),
        (r"advance in ticks \((\S+) % of a CPU\)", constant("analyse.overuse", "TICK_LAG")),
        (r"is above it by more than (\S+) %", constant("analyse.overuse", "MEAN_OVER", above_one)),
        (r"readings (\S+) second or more apart", constant("analyse.overuse", "_SPAN")),
        (r"completed runs of (\S+) seconds or more", constant("analyse.waste", "SHORTEST")),
        (r"used less than (\S+) of a request", constant("analyse.waste", "WASTED_BELOW")),
        (r"if (\S+) MiB or one CPU less", constant("analyse.waste", "LEAST_MEMORY", lambda size: size / MIB)),
        (r"MiB or (\S+) CPU less", constant("analyse.waste", "LEAST_CPUS")),
        (r"more than (\S+) runs no opportunities", constant("store.query.overuse", "MANY")),
        (r"the last (\S+) at most", constant("store.query.overuse", "_FAILURES")),
    ),
    "size.md": (
        (r"The newest (\S+) runs count", constant("analyse.size.predictor", "MOST_RUNS")),
        (r"(\S+) % where it is exact", entry("analyse.size.observation", "ROOM", Quality.EXACT.value, above_one)),
        (r"(\S+) % where it was sampled", entry("analyse.size.observation", "ROOM", Quality.SAMPLED.value, above_one)),
        (
            r'(\S+) % where it is "at least"',
            entry("analyse.size.observation", "ROOM", Quality.AT_LEAST.value, above_one),
        ),
        (r"used more, (\S+) times the limit", constant("analyse.size.observation", "BEYOND_LIMIT")),
        (r"ever completed, (\S+) times the limit", constant("analyse.size.observation", "BEYOND_LIMIT_UNKNOWN")),
        (r"From one run, (\S+) times its need", constant("analyse.size.sizer", "SINGLE")),
        (r"never more than (\S+) times the largest need", constant("analyse.size.sizer", "MOST_TIMES")),
        (r"(\S+) MiB of memory is added", constant("analyse.size.policy", "MEMORY_PLUS", lambda size: size / MIB)),
        (r"and (\S+) second of time", constant("analyse.size.policy", "RUNTIME_PLUS")),
        (r"At least (\S+) MiB and", constant("analyse.rounding", "LEAST_MEMORY", lambda size: size / MIB)),
        (r"At least \S+ MiB and (\S+) seconds", constant("analyse.rounding", "LEAST_RUNTIME")),
        (r"Below (\S+) GiB-hours", constant("report.size", "_LITTLE")),
    ),
    "compare.md": (
        (r"Up to (\S+) splits", constant("analyse.permutation", "_EXACT")),
        (r"beyond that, (\S+) random ones", constant("analyse.permutation", "_DRAWS")),
        (r"more than (\S+) runs on both sides", constant("analyse.permutation", "_MANY")),
        (r"does not reject at (\S+) %", constant("analyse.permutation", "CONFIDENCE", lambda c: 100 * (1 - c))),
    ),
    "run.md": (
        (r"SIGTERM and, (\S+) seconds later, SIGKILL", constant("launch.supervisor", "GRACE")),
        (r"sent again, (\S+) second or more later", constant("launch.supervisor", "_SAME_CALL")),
    ),
    "ls.md": ((r"shows the newest (\S+) runs", constant("cli.ls", "_SHOWN")),),
    "store.md": (
        (r"holds its lock for\s(\S+) seconds", constant("store.index.database", "_BUSY_SECONDS")),
        (r"wait up to (\S+) seconds for the lock", constant("store.index.database", "_PATIENT_SECONDS")),
        (r"wait of more than (\S+) seconds", constant("store.index.database", "_SILENT_SECONDS")),
        (r"after (\S+) hour without a new line", constant("store.index.liveness", "_SILENT", lambda s: s / 3600)),
    ),
    "container.md": (
        (r"is waited for, up to (\S+) s", constant("launch.container.supervisor", "_RUNTIME_PATIENCE")),
        (r"output ends (\S+) s after the container", constant("session.container", "_REST_OF_OUTPUT")),
        (r"for less than (\S+) s has no CPU", constant("analyse.headline", "_SHORTEST_SPAN")),
        (r"this limit is (\S+) second", constant("session.container", "_LITTLE_START")),
        (r"sets how often \(default (\d+)\)", constant("cli.compare_container", "_RUNS")),
    ),
    "accuracy.md": (
        (r"where that is over (\S+) % it says", constant("analyse.headline", "_AGREE", above_one)),
        (r"a hypervisor stole less than (\S+) % of it", constant("analyse.headline", "_AGREE", above_one)),
        (r"confirm one of the two above within (\S+) %", constant("analyse.headline", "_AGREE", above_one)),
        (
            r"was seen to use more than (\S+) % of it",
            constant("collectors.proc_escapes", "_MOST_OF_OTHER_USERS", percent),
        ),
        (r"used no more, within (\S+) % and", constant("analyse.headline", "_UNEXPLAINED", percent)),
        (r"used no more, within \S+ % and (\S+) ms", constant("analyse.headline", "_UNEXPLAINED_SECONDS", milli)),
    ),
    "environment.md": (
        (r"`--interval` \| `JOBMETER_INTERVAL` \| `(\S+)s`", lambda: float(SETTINGS["interval"].default)),
        (r"`--window` \| \| (\S+) ms at first", constant("meter.schedule", "FIRST_FINE", milli)),
        (r"growing with the run up to `(\S+)s`", lambda: USUAL.window),
    ),
}


def number(text: str) -> float:
    return float(WORDS[text] if text in WORDS else text.replace(",", ""))


@pytest.mark.parametrize(
    ("page", "pattern", "value"),
    [(page, pattern, value) for page, statements in STATEMENTS.items() for pattern, value in statements],
)
def test_a_number_that_is_stated_is_that_of_the_code(page: str, pattern: str, value: Callable[[], float]) -> None:
    text = " ".join(Path(ROOT, "docs", page).read_text().split())
    stated = re.search(pattern, text)
    assert stated is not None, f"docs/{page} has no such sentence"
    assert number(stated[1]) == pytest.approx(value())
