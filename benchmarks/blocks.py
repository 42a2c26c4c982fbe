"""The cost of `jobmeter.measure`: an empty block, and its import with the first block; printed as JSON.

The fastest of many, and CPU time for starts: so that a busy machine changes as little as possible.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

BLOCKS, TIMES = 25, 80
STARTS = 15
FIRST = "import jobmeter\nwith jobmeter.measure('first', store={!r}): pass"


def empty_block_seconds() -> float:
    """Of the fastest of some series of empty blocks that are stored."""
    import jobmeter

    series = []
    with tempfile.TemporaryDirectory() as store:
        for _ in range(TIMES):
            began = time.perf_counter()
            for _ in range(BLOCKS):
                with jobmeter.measure("empty", store=store):
                    pass
            series.append((time.perf_counter() - began) / BLOCKS)
    return min(series)


def start_seconds(code: str) -> float:
    """The least CPU time of some starts of Python with this code."""
    # As installed, compiled once: the first start does it, and is not the best.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(STARTS):
        process = subprocess.Popen([sys.executable, "-c", code], env=environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        times.append(used.ru_utime + used.ru_stime)
    return min(times)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        bare, first = start_seconds("pass"), start_seconds(FIRST.format(place))
    print(json.dumps({"block": empty_block_seconds(), "bare": bare, "import": first - bare}))
