"""`python -m benchmarks.sizing DIR [--seeds 1996,1,2] [--cold] [--json]`: advice on recorded workflows.

Replays every `*trace_NAME.csv` in DIR, a trace of Nextflow. Of each process with enough tasks a part is the past, the
others come one by one in a random order: a request below what the task needed fails at its end, wastes all it held and
is retried; one that fits wastes what lies above the need.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from jobmeter.analyse.resource import MEMORY, RUNTIME
from jobmeter.analyse.size.need import Need
from jobmeter.analyse.size.policy import Policy
from jobmeter.analyse.size.replay import Advised, Largest, Method, ReplayedTask, Requested, replay

LEAST_TASKS = 34
PAST = 0.3
GB_HOURS = 3600 * 1e9
HOURS = 3600.0


class Score(NamedTuple):
    wasted: float
    failed: float  # failed attempts per task
    milliseconds: list[float]


class Timed:
    """A method, and the time that it took to make each request."""

    def __init__(self, method: Method) -> None:
        self._method = method
        self.milliseconds: list[float] = []
        self.learn, self.settle, self.retry, self.update = method.learn, method.settle, method.retry, method.update

    def request(self, task: ReplayedTask) -> float:
        start = time.perf_counter()
        amount = self._method.request(task)
        self.milliseconds.append(1000 * (time.perf_counter() - start))
        return amount


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizing", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seeds", default="1996,1,2", help="of the random orders, with commas between")
    parser.add_argument("--cold", action="store_true", help="no past at all")
    parser.add_argument("--runtime", action="store_true", help="time limits instead of memory")
    parser.add_argument("--only", help="this workflow alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    results = {}
    for path in sorted(options.directory.glob("*trace_*.csv")):
        name = path.stem.partition("trace_")[2]
        if options.only in (None, name):
            results[name] = score_workflow(read_tasks(path, runtime=options.runtime), seeds, options)
    if not results:
        print(f"{options.directory}: no *trace_NAME.csv", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(results, indent=1))
    else:
        for name, methods in results.items():
            for method, figures in methods.items():
                print(name, method, " ".join(f"{key}={value:.4g}" for key, value in figures.items()))
    return 0


def read_tasks(path: Path, *, runtime: bool) -> list[ReplayedTask]:
    """The tasks of processes that have enough of them, each with its need."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    processes: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        processes.setdefault(row["process"], []).append(row)
    return [
        ReplayedTask(process, _need(row, runtime=runtime))
        for process, tasks in processes.items()
        if len(tasks) >= LEAST_TASKS and all(_number(row, "realtime") for row in tasks)
        for row in tasks
    ]


def _need(row: dict[str, str], *, runtime: bool) -> Need:
    features = {"read_bytes": _number(row, "rchar") or 0.0}
    seconds = (_number(row, "realtime") or 0.0) / 1000
    if runtime:
        limit = _number(row, "time")
        return Need(seconds, features, 1.0, limit / 1000 if limit else None)
    return Need(_number(row, "rss") or 1.0, features, seconds, _number(row, "memory"))


def _number(row: dict[str, str], column: str) -> float | None:
    try:
        return float(row[column])
    except ValueError:
        return None


def score_workflow(
    tasks: list[ReplayedTask], seeds: Sequence[int], options: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """The mean scores over the seeds, for each method."""
    terms = Policy().terms(RUNTIME if options.runtime else MEMORY)
    methods: dict[str, Callable[[], Method]] = {
        "ours": lambda: Advised(terms),
        "requested": Requested,
        "largest": Largest,
    }
    if any(task.need.requested is None for task in tasks):
        del methods["requested"]
    past = 0.0 if options.cold else PAST
    unit = HOURS if options.runtime else GB_HOURS
    results = {}
    for method, make in methods.items():
        scores = [score(make(), *split(tasks, seed, past)) for seed in seeds]
        timings = [each for one in scores for each in one.milliseconds]
        results[method] = {
            "hours_wasted" if options.runtime else "gb_hours_wasted": fmean(one.wasted for one in scores) / unit,
            "failed_share": fmean(one.failed for one in scores),
        }
        if method == "ours":
            results[method] |= {"advice_ms": median(timings), "advice_ms_most": max(timings)}
    return results


def split(tasks: Iterable[ReplayedTask], seed: int, past: float) -> tuple[dict[str, list[Need]], list[ReplayedTask]]:
    """Split the tasks into those that are known at the start, and those to come in a random order."""
    order = random.Random(seed)
    processes: dict[str, list[ReplayedTask]] = {}
    for task in tasks:
        processes.setdefault(task.job, []).append(task)
    history: dict[str, list[Need]] = {}
    coming: list[ReplayedTask] = []
    for process, mine in processes.items():
        order.shuffle(mine)
        count = int(past * len(mine))
        history[process] = [task.need for task in mine[:count]]
        coming += mine[count:]
    order.shuffle(coming)
    return history, coming


def score(method: Method, history: dict[str, list[Need]], coming: list[ReplayedTask]) -> Score:
    """What the requests of one method would have wasted."""
    for process, past in history.items():
        method.learn(process, past)
    method.settle()
    timed = Timed(method)
    steps = replay(timed, coming)
    return Score(
        sum(step.wasted for step in steps), sum(step.failed for step in steps) / len(coming), timed.milliseconds
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
