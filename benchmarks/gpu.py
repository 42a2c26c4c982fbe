"""What a sample of an NVIDIA GPU costs: our collector and the real client, with a stub of the driver's library.

`python -m benchmarks.gpu`. The stub reads every answer from a file, as no driver does: the result is an upper bound.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.nvml.driver import StubDriver

_LIMIT = 1e-3
_SAMPLES = 200


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        driver = StubDriver(Path(folder))
        lines: dict[str, object] = {"gpus": 2}
        for number in range(2):
            figures = {"busy": 50, "used": 1, "total": 2, "power": 3, "energy": 4, "celsius": 5, "clocks": 0}
            lines |= {f"gpu{number}.{name}": value for name, value in (figures | {"pids": "1:2"}).items()}
        driver.say(lines)
        environment = {**driver.environment, "PYTHONPATH": os.pathsep.join(("src", "."))}
        command = [sys.executable, "-m", "benchmarks.gpu", "sample"]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds = float(done.stdout)
    print(f"a sample of a GPU: {seconds * 1e6:.0f} µs of CPU, {seconds / _LIMIT:.2f} of the budget of 1 ms")


def sample() -> None:
    """Print the CPU seconds per device and sample, including those of the client and the library."""
    from jobmeter.collectors.contract import Moment, Target
    from jobmeter.collectors.nvml import NvmlSource

    source = NvmlSource(Target(os.getpid(), os.getpid(), root_is_job=True))
    while not source.read(Moment(time.monotonic())):
        time.sleep(0.05)
    before = time.process_time()
    for _ in range(_SAMPLES):
        source.read(Moment(time.monotonic()))
    print((time.process_time() - before) / _SAMPLES / 2)


if __name__ == "__main__":
    sample() if sys.argv[1:] == ["sample"] else main()
