"""What measuring costs the job itself: `python -m benchmarks slowdown [--load NAME]... [--pairs N]`.

A job does a fixed amount of work and times it, bare and under jobmeter in turn, so that start-up is not in it. The
ratio of each pair is taken first; the mean of their logarithms has a confidence interval.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

from benchmarks.peers import Missing
from benchmarks.table import print_table
from benchmarks.tool import PYTHON, ROOT, Tool, environment
from jobmeter.analyse.student import quantile

LOADS = ("forks", "threads", "page-faults", "switches", "reads-writes", "files", "computes")
VARIANTS = {
    "jobmeter": [],
    "without perf": ["--measurements=-perf_*"],
    "without cgroup": ["--measurements=-cgroup_*"],
    "without proc": ["--measurements=-proc_*"],
    "nothing measured": ["--measurements=none"],
}
"""Each source switched off in turn."""
USERS = {"root": 0, "ordinary user": 65534}
PAIRS = 15
_LIMIT = 1.02


class Ratio(NamedTuple):
    """The slow-down, with its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


def show(tools: list[Tool], missing: Missing, loads: list[str] | None = None, pairs: int = PAIRS) -> None:
    """Print the ratio to bare of every load, as root and as an ordinary user, with each source off in turn."""
    del tools, missing  # of other tools only jobmeter itself is looked at
    with tempfile.TemporaryDirectory(prefix="jobmeter-bench-") as place:
        os.chmod(place, 0o777)
        program = _compile(place)
        rows = []
        for load in loads or LOADS:
            for who, user in USERS.items():
                if user and os.getuid() != 0:
                    continue
                print(f"{load}: {who}", file=sys.stderr)
                ratios = _ratios([program, load], place, user, pairs)
                rows.append([load, who, *(str(ratios[name]) for name in VARIANTS)])
    print_table(
        f"The time a job takes, to bare; {pairs} pairs in turn, 95 % intervals", ["load", "as", *VARIANTS], rows
    )
    print(f"The budget is {_LIMIT}.")


def _compile(place: str) -> str:
    program = f"{place}/disturb"
    source = ROOT / "benchmarks" / "disturb.c"
    subprocess.run(["gcc", "-O2", "-pthread", "-Wall", "-o", program, str(source)], check=True)
    shutil.copytree(ROOT / "src", f"{place}/src", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([PYTHON, "-m", "compileall", "-q", f"{place}/src"], check=True)
    subprocess.run(["chmod", "-R", "a+rX", place], check=True)
    return program


def _ratios(job: list[str], place: str, user: int, pairs: int) -> dict[str, Ratio]:
    logarithms: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(pairs):
        names = list(VARIANTS)
        random.shuffle(names)
        for name in names:
            # Bare before one variant and after the next: what changes slowly on the machine is in both.
            commands = [job, [PYTHON, "-m", "jobmeter", "run", "--quiet", *VARIANTS[name], "--", *job]]
            order = commands if random.random() < 0.5 else commands[::-1]
            seconds = {id(command): _seconds(command, place, user) for command in order}
            logarithms[name].append(math.log(seconds[id(commands[1])] / seconds[id(commands[0])]))
    return {name: _interval(values) for name, values in logarithms.items()}


def _seconds(command: list[str], place: str, user: int) -> float:
    """What the job says it took."""
    if user:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    settings = {**environment(), "PYTHONPATH": f"{place}/src", "HOME": place, "JOBMETER_STORE": f"{place}/store-{user}"}
    done = subprocess.run(command, env=settings, cwd=place, capture_output=True, text=True, check=True)
    return float(done.stdout)


def _interval(values: list[float]) -> Ratio:
    mean = statistics.fmean(values)
    freedom = len(values) - 1
    half = quantile(0.975, freedom) * statistics.stdev(values) / math.sqrt(len(values))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))
