"""Numbers that the documentation states are those of the code."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from jobmeter.meter.schedule import peek_gap
from jobmeter.model import Quality
from jobmeter.settings import SETTINGS
from tests.running import ROOT

WORDS = {
    "half": 0.5, "a": 1, "an": 1, "one": 1, "once": 1, "twice": 2, "two": 2, "four": 4, "five": 5, "ten": 10,
    "Ten": 10, "thirty": 30, "thousand": 1000,
}  # fmt: skip
MIB = 2.0**20


class Statement(NamedTuple):
    """A sentence of a page with one number in it, and where the code has it."""

    page: str
    pattern: str  # one group: the number, in figures or as a word
    value: Callable[[], float]  # in the unit of the sentence


def constant(module: str, name: str, convert: Callable[[float], float] = float) -> Callable[[], float]:
    """The value of `jobmeter.MODULE.NAME`, in another unit if `convert` is given."""
    return lambda: convert(getattr(importlib.import_module(f"jobmeter.{module}"), name))


def entry(module: str, name: str, key: object, convert: Callable[[float], float] = float) -> Callable[[], float]:
    """The value of one key of a constant."""
    return lambda: convert(getattr(importlib.import_module(f"jobmeter.{module}"), name)[key])


def allowance(path: str, owner: str) -> Callable[[], float]:
    """Percent of the time that a class, or an attribute, of a collector may use."""
    source = Path(ROOT, "src", "jobmeter", path).read_text()
    found = re.search(rf"\b{owner}\b.*?Allowance\((?:share=)?([\d.]+)", source, re.DOTALL)
    assert found is not None, f"{path}: no allowance of {owner}"
    return lambda: 100 * float(found[1])


def percent(share: float) -> float:
    return 100 * share


def above_one(factor: float) -> float:
    return 100 * (factor - 1)


def milli(value: float) -> float:
    return 1000 * value


def micro(value: float) -> float:
    return 1e6 * value


DESIGN = (
    Statement("design", r"every (\S+) ms at first, then every", constant("meter.schedule", "SHORTEST_PEEK", milli)),
    Statement("design", r"then every (\S+) % of the elapsed time", lambda: percent(peek_gap(1.0, ran=True))),
    Statement("design", r"elapsed time \((\S+) % while the job does not run", lambda: percent(peek_gap(1.0, ran=False))),
    Statement("design", r"and later every (\S+) s \(", lambda: peek_gap(1e6, ran=True)),
    Statement("design", r"and later every \S+ s \((\S+) s\)", lambda: peek_gap(1e6, ran=False)),
    Statement("design", r"first sample comes (\S+) ms after the start", constant("meter.schedule", "FIRST", milli)),
    Statement("design", r"first window is written after (\S+) second", constant("meter.schedule", "FIRST_WINDOW")),
    Statement("design", r"its peeks cost: at most (\S+) % of the time", allowance("collectors/cgroup.py", "_peeks")),
    Statement("design", r"its peeks cost: at most (\S+) % of the time", allowance("collectors/proc.py", "_peeks")),
    Statement("design", r"readings take at most (\S+) % of the time", allowance("collectors/proc_memory.py", "Shares")),
    Statement(
        "design", r"10 to (\S+) ms per GiB",
        constant("collectors.proc_memory", "_SMAPS_SECONDS_PER_BYTE", lambda seconds: 1000 * seconds * 2**30),
    ),
    Statement("design", r"rates are over (\S+) second or more", constant("collectors.rate", "SHORTEST_SPAN")),
    Statement("design", r"so a rate needs (\S+) of them", constant("collectors.rate", "_TICKS_OF_A_RATE")),
    Statement(
        "design", r"gives a job its share every (\S+) ms",
        constant("kernel.cgroup.v2", "_CPU_PERIOD_US", lambda microseconds: microseconds / 1000),
    ),
    Statement("design", r"some (\S+) µs for each task that begins", constant("collectors.perf_cost", "_OF_A_TASK", micro)),
    Statement("design", r"(\S+) µs for each context switch", constant("collectors.perf_cost", "_OF_A_SWITCH", micro)),
    Statement(
        "design", r"(\S+) times a second at first, once a second later",
        constant("collectors.perf_cost", "_FIRST_GAP", lambda gap: 1 / gap),
    ),
    Statement("design", r"at first, (\S+) a second later", constant("collectors.perf_cost", "_LONGEST_GAP")),
    Statement("design", r"above (\S+) % twice in a row", constant("collectors.perf_cost", "_MOST", percent)),
    Statement("design", r"or above (\S+) % once:", constant("collectors.perf_cost", "_MOST_AT_ONCE", percent)),
    Statement("design", r"reports over (\S+) % and \S+ ms more is taken", constant("analyse.headline", "_MORE", above_one)),
    Statement("design", r"reports over \S+ % and (\S+) ms more is taken", constant("analyse.headline", "_TICK", milli)),
)  # fmt: skip

RULES = (
    Statement("check", r"over-use \((\S+) % above the request", constant("analyse.overuse", "LEAST_OVER")),
    Statement("check", r"one second can contain one share more \((\S+) %\)", constant("analyse.overuse", "PEAK_OVER", above_one)),
    Statement("check", r"advance in ticks \((\S+) % of a CPU\)", constant("analyse.overuse", "TICK_LAG")),
    Statement("check", r"is above it by more than (\S+) %", constant("analyse.overuse", "MEAN_OVER", above_one)),
    Statement("check", r"readings (\S+) second or more apart", constant("analyse.overuse", "_SPAN")),
    Statement("check", r"completed runs of (\S+) seconds or more", constant("analyse.waste", "SHORTEST")),
    Statement("check", r"used less than (\S+) of a request", constant("analyse.waste", "WASTED_BELOW")),
    Statement("check", r"if (\S+) MiB or one CPU less", constant("analyse.waste", "LEAST_MEMORY", lambda size: size / MIB)),
    Statement("check", r"MiB or (\S+) CPU less", constant("analyse.waste", "LEAST_CPUS")),
    Statement("check", r"more than (\S+) runs no opportunities", constant("store.query.overuse", "MANY")),
    Statement("check", r"the last (\S+) at most", constant("store.query.overuse", "_FAILURES")),
    Statement("size", r"The newest (\S+) runs count", constant("analyse.size", "MOST_RUNS")),
    Statement("size", r"halves with every (\S+) newer runs", constant("analyse.prediction", "HALF_LIFE")),
    Statement("size", r"at least (\S+) % for memory", constant("analyse.size", "_MEMORY_DEVIATION", percent)),
    Statement("size", r"% for memory and (\S+) % for time", constant("analyse.size", "_TIME_DEVIATION", percent)),
    Statement("size", r"(\S+) % where it is exact", entry("analyse.size", "ROOM", Quality.EXACT.value, above_one)),
    Statement("size", r"(\S+) % where it was sampled", entry("analyse.size", "ROOM", Quality.SAMPLED.value, above_one)),
    Statement("size", r'(\S+) % where it is "at least"', entry("analyse.size", "ROOM", Quality.AT_LEAST.value, above_one)),
    Statement("size", r"used more, (\S+) times the limit", constant("analyse.estimate", "BEYOND_LIMIT")),
    Statement("size", r"ever completed, (\S+) the limit", constant("analyse.estimate", "BEYOND_LIMIT_UNKNOWN")),
    Statement("size", r"From one run, (\S+) times its memory", constant("analyse.size", "_SINGLE_MEMORY")),
    Statement("size", r"its memory and (\S+) its time", constant("analyse.size", "_SINGLE_TIME")),
    Statement("size", r"four runs at most (\S+), \S+ and \S+ times", entry("analyse.estimate", "MOST_TIMES", 2)),
    Statement("size", r"four runs at most \S+, (\S+) and \S+ times", entry("analyse.estimate", "MOST_TIMES", 3)),
    Statement("size", r"four runs at most \S+, \S+ and (\S+) times", entry("analyse.estimate", "MOST_TIMES", 4)),
    Statement("size", r"from more at most (\S+) times", constant("analyse.estimate", "MOST_TIMES_EVER")),
    Statement("size", r"At least (\S+) MiB and", constant("analyse.rounding", "LEAST_MEMORY", lambda size: size / MIB)),
    Statement("size", r"At least \S+ MiB and (\S+) seconds", constant("analyse.rounding", "LEAST_RUNTIME")),
    Statement("size", r"Below (\S+) GB-hours", constant("report.size", "_LITTLE")),
    Statement("compare", r"Up to (\S+) splits", constant("analyse.permutation", "_EXACT")),
    Statement("compare", r"beyond that, (\S+) random ones", constant("analyse.permutation", "_DRAWS")),
    Statement("compare", r"more than (\S+) runs on both sides", constant("analyse.permutation", "_MANY")),
    Statement("compare", r"does not reject at (\S+) %", constant("analyse.permutation", "CONFIDENCE", lambda c: 100 * (1 - c))),
)  # fmt: skip

TIMES = (
    Statement("run", r"SIGTERM and, (\S+) seconds later, SIGKILL", constant("launch.supervisor", "GRACE")),
    Statement("run", r"sent again, (\S+) second or more later", constant("launch.supervisor", "_SAME_CALL")),
    Statement("ls", r"shows the newest (\S+) runs", constant("cli.ls", "_SHOWN")),
    Statement("store", r"write to the index for (\S+) seconds", constant("store.index.database", "_BUSY_SECONDS")),
    Statement("store", r"after (\S+) hour without a new line", constant("store.index.liveness", "_SILENT", lambda s: s / 3600)),
    Statement("container", r"is waited for, up to (\S+) s", constant("launch.container.supervisor", "_RUNTIME_PATIENCE")),
    Statement("container", r"output ends (\S+) s after the container", constant("session.container", "_REST_OF_OUTPUT")),
    Statement("container", r"for less than (\S+) s has no CPU", constant("analyse.headline", "_SHORTEST_SPAN")),
    Statement("container", r"this limit is (\S+) second", constant("session.container", "_LITTLE_START")),
    Statement("container", r"sets how often \(default (\d+)\)", constant("cli.compare_container", "_RUNS")),
    Statement("environment", r"`--interval` \| `JOBMETER_INTERVAL` \| `(\S+)s`", lambda: float(SETTINGS["interval"].default)),
    Statement("environment", r"`--window` \| \| `(\S+)s`", lambda: float(SETTINGS["window"].default)),
)  # fmt: skip


def number(text: str) -> float:
    return float(WORDS[text] if text in WORDS else text.replace(",", ""))


@pytest.mark.parametrize("statement", [*DESIGN, *RULES, *TIMES], ids=lambda statement: statement.pattern)
def test_a_number_that_is_stated_is_that_of_the_code(statement: Statement) -> None:
    page = " ".join(Path(ROOT, "docs", f"{statement.page}.md").read_text().split())
    stated = re.search(statement.pattern, page)
    assert stated is not None, f"docs/{statement.page}.md has no such sentence"
    assert number(stated[1]) == pytest.approx(statement.value())
