"""How much measuring slows down the job itself: `python -m benchmarks slowdown [--load NAME]... [--pairs N]`.

Two processes of the same program run at once, one bare and one under jobmeter, and take turns of some 50 ms. Each
does a fixed amount of work and times it: start-up is not included, and changes on the machine affect both alike. Each
pair of turns gives a ratio; the confidence interval is that of the mean of their logarithms.
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
PAIRS = 60
_LIMIT = 1.02


class Ratio(NamedTuple):
    """The slow-down, with its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


def show(tools: list[Tool], missing: Missing, loads: list[str] | None = None, pairs: int = PAIRS) -> None:
    """Print the ratio to a bare run for every load, as root and as an ordinary user, with each source off in turn."""
    del tools, missing  # this section runs jobmeter only
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
        f"The time a job takes, to bare; {pairs} pairs of turns, 95 % intervals", ["load", "as", *VARIANTS], rows
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
    return {
        name: _interval(
            _take_turns(job, [PYTHON, "-m", "jobmeter", "run", "--quiet", *options, "--", *job], place, user, pairs)
        )
        for name, options in VARIANTS.items()
    }


def _take_turns(bare: list[str], measured: list[str], place: str, user: int, pairs: int) -> list[float]:
    """The logarithm of the ratio of each pair of turns."""
    logarithms = []
    with _start(bare, place, user) as one, _start(measured, place, user) as other:
        for process in (one, other):
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise ChildProcessError(f"{process.args!r} ended before it was ready")
        for _ in range(pairs):
            order = [one, other] if random.random() < 0.5 else [other, one]
            seconds = {process.pid: _turn(process) for process in order}
            logarithms.append(math.log(seconds[other.pid] / seconds[one.pid]))
        for process in (one, other):
            assert process.stdin is not None
            process.stdin.close()
    return logarithms


def _start(command: list[str], place: str, user: int) -> subprocess.Popen[str]:
    if user:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    settings = {**environment(), "PYTHONPATH": f"{place}/src", "HOME": place, "JOBMETER_STORE": f"{place}/store-{user}"}
    return subprocess.Popen(
        command, env=settings, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def _turn(process: subprocess.Popen[str]) -> float:
    """Have the job take one turn, and return the seconds that it reports."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("x")
    process.stdin.flush()
    return float(process.stdout.readline())


def _interval(values: list[float]) -> Ratio:
    mean = statistics.fmean(values)
    freedom = len(values) - 1
    half = quantile(0.975, freedom) * statistics.stdev(values) / math.sqrt(len(values))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))
