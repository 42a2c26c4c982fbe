"""Runs a job as `jobmeter run` does, and keeps every sample."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from jobmeter.meter.watch import Sample
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.measuring import MeasureOptions
from jobmeter.session.session import Session
from tests.records import check_record

MIB = 1 << 20

BURN = "import time\ndef burn(seconds):\n    while time.process_time() < seconds: pass\n"
"""Python that defines `burn`: use CPU until the process has used `seconds` of it."""


BURN_FOR = """\
import time
def burn_for(seconds, path):
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() < began + seconds: pass
    rate = 100 * (time.process_time() - used) / (time.monotonic() - began)
    open(path, "w").write(str(rate))
"""
"""Python that defines `burn_for`: use a CPU for `seconds`, and write the percent of it that others left to `path`."""


class Metered(NamedTuple):
    record: Any
    samples: list[Sample]

    def total(self, key: str) -> float:
        return float(self.record["measurements"][key]["total"])

    def peak(self, key: str) -> float:
        return float(self.record["measurements"][key]["peak"])


def meter_python(program: str, measurements: list[str], interval: float = 1.0) -> Metered:
    """Run `program` in a Python of its own and measure it."""
    samples: list[Sample] = []
    session = Session(
        LaunchedCommand(JobOptions([sys.executable, "-c", program])),
        MeasureOptions(measurements=measurements, interval=interval),
        on_sample=samples.append,
    )
    session.start()
    record = session.wait()
    check_record(record)
    return Metered(record, samples)


def children(body: str, count: int) -> str:
    """A program whose `count` children run `body`, which knows `burn`, and are waited for."""
    return (
        "import subprocess, sys\n"
        f"body = {BURN + body!r}\n"
        f"for child in [subprocess.Popen([sys.executable, '-c', body]) for _ in range({count})]: child.wait()\n"
    )
