"""`python -m benchmarks.containers IMAGE [--engine NAME] [--runs N]`: how accurate the figures of a container are.

Needs a container runtime that is running, and any image: Python comes from this machine's /usr.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from typing import Any, NamedTuple

from benchmarks.table import mib, print_table
from jobmeter.launch.container.spec import ContainerOptions, Mount
from jobmeter.launch.spawn import Streams
from jobmeter.session.container import LaunchedContainer
from jobmeter.session.container_job import ContainerJob
from jobmeter.session.session import Session

CPU_SECONDS = 2.0
LOAD = f"""
import resource, time
held = b"x" * (300 << 20)
time.sleep(0.2)
del held
while time.process_time() < {CPU_SECONDS}: pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
SHORT = "import time; time.sleep(0.05)"


class Seen(NamedTuple):
    """One run: what was measured, and what the load said of itself."""

    record: Any
    said: str

    def value(self, name: str) -> float:
        return float(self.record["usage"][name]["value"])

    def quality(self, name: str) -> str:
        return str(self.record["usage"][name]["quality"])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.containers")
    parser.add_argument("image")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args(arguments)
    mounts = tuple(Mount(path, path, True) for path in ("/usr", "/lib", "/lib64"))
    container = ContainerOptions(options.image, engine=options.engine, network="none", mounts=mounts)
    runs = [run(container, LOAD) for _ in range(options.runs)]
    short = [run(container, SHORT) for _ in range(options.runs)]
    rows = [
        _row(f"CPU, {CPU_SECONDS} s", [seen.value("cpu_seconds") / CPU_SECONDS for seen in runs], 0.02),
        _row("peak, 300 MiB for 0.2 s", [seen.value("memory_peak_bytes") / int(seen.said) for seen in runs], 0.03),
    ]
    print_table(f"{options.engine}: {options.runs} runs at 1 s", ["figure", "least", "most", "within", "runs"], rows)
    cpu = sorted(seen.value("cpu_seconds") for seen in short)
    peak = sorted(seen.value("memory_peak_bytes") for seen in short)
    print(f"a container of 50 ms: CPU {cpu[0] * 1000:.0f} to {cpu[-1] * 1000:.0f} ms")
    print(f"a container of 50 ms: peak {mib(peak[0])} to {mib(peak[-1])}")
    for name in ("cpu_seconds", "memory_peak_bytes"):
        exact = sum(seen.quality(name) == "exact" for seen in (*runs, *short))
        print(f"{name}: exact in {exact} of {len(runs) + len(short)} runs")
    return 0


def run(container: ContainerOptions, program: str) -> Seen:
    with tempfile.TemporaryFile() as output, open(os.devnull, "rb") as nothing:
        streams = Streams(nothing.fileno(), output.fileno(), None)
        job = ContainerJob(container, ["/usr/bin/python3", "-c", program], streams=streams)
        session = Session(LaunchedContainer(job))
        session.start()
        record = session.wait()
        output.seek(0)
        return Seen(record, output.read().decode())


def _row(name: str, ratios: list[float], tolerance: float) -> list[str]:
    within = sum(abs(ratio - 1) <= tolerance for ratio in ratios)
    return [name, f"{min(ratios):.3f}×", f"{max(ratios):.3f}×", f"{tolerance:.0%}", f"{within} of {len(ratios)}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
