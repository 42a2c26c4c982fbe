"""The cost of `jobmeter.measure`: an empty block, and its import with the first block; printed as JSON.

Takes the fastest of many repeats, and CPU time for starts, so that a busy machine has as little effect as possible.
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
    """The time of an empty block that is stored, in the fastest of `TIMES` series."""
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
    # Bytecode is written, as for an installed package: the first start compiles, and is not the fastest.
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
