"""An example job: three workers that compute, one that needs memory for a moment, and short helpers.

It does what makes measuring hard: processes that come and go between two samples,
memory that is there for a quarter of a second, and pages that workers share.
"""

import multiprocessing
import subprocess
import sys
import time


def compute(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))


def spike(mebibytes: int) -> None:
    block = bytearray(mebibytes << 20)
    time.sleep(0.25)
    del block


def main() -> None:
    shared = bytearray(50 << 20)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=compute, args=(0.6,)) for _ in range(3)]
    workers.append(context.Process(target=spike, args=(200,)))
    for worker in workers:
        worker.start()
    for _ in range(20):
        subprocess.run([sys.executable, "-S", "-c", "sum(range(200000))"], check=True)
    for worker in workers:
        worker.join()
    print(f"pipeline: {len(workers)} workers and 20 helpers are done, {len(shared) >> 20} MiB shared")


if __name__ == "__main__":
    main()
