"""A project as others have it, which knows nothing of jobmeter but the requirements of two tasks."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from celery import Celery

app: Any = Celery("project", broker=os.environ.get("BROKER"), backend=os.environ.get("BROKER"))
app.conf.update(
    broker_transport_options={"visibility_timeout": int(os.environ.get("VISIBILITY_TIMEOUT", "3600"))},
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
    result_extended=True,
)

HOG = """
import resource, sys, time
data = b"1" * (int(sys.argv[2]) << 20)
while time.process_time() < float(sys.argv[1]):
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
"""


@app.task
def add(a: int, b: int) -> int:
    return a + b


@app.task
def start_process(seconds: float, mebibytes: int) -> list[float]:
    """The CPU time and the peak of memory of a process, as the kernel reports them.

    To free so much memory at its end takes CPU time too, so the CPU time is read when it has ended.
    """
    command = [sys.executable, "-S", "-c", HOG, str(seconds), str(mebibytes)]
    before = os.times()
    peak_bytes = int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    after = os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return [used, peak_bytes]


@app.task
def run_true() -> None:
    subprocess.run(["true"], check=True)


@app.task
def hold(mebibytes: int) -> int:
    """Memory of this process alone, for long enough to be sampled. Returns the child."""
    data = b"1" * (mebibytes << 20)
    time.sleep(0.3)
    return os.getpid() if data else 0


@app.task(bind=True)
def spin(self: Any, seconds: float, others: int = 0, place: str = "") -> float:
    """CPU time of this thread; with others, it begins when all are there. Returns what the kernel says it used.

    With a place, it is written to a file there too, for those who do without the result: storing that takes CPU time.
    """
    at_first = time.thread_time()
    if others:
        (Path(place) / f"{uuid.uuid4().hex}.here").touch()
        while len(list(Path(place).glob("*.here"))) < others:
            time.sleep(0.005)
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass
    used = time.thread_time() - at_first
    if place:
        (Path(place) / f"{self.request.id}.truth").write_text(str(used))
    return used


@app.task(bind=True, max_retries=1)
def fail_once(self: Any) -> str:
    if not self.request.retries:
        raise self.retry(exc=ValueError("not yet"), countdown=0)
    return "well"


@app.task
def fail() -> None:
    raise ValueError("always")


@app.task
def leave(code: int) -> None:
    sys.exit(code)


@app.task
def kill_child(after: float) -> None:
    """What `kill -9` does, from within."""
    time.sleep(after)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(acks_late=True, reject_on_worker_lost=True)
def kill_child_once(place: str) -> int:
    mark = Path(place) / "killed"
    if not mark.exists():
        mark.touch()
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


@app.task(acks_late=True)
def wait(place: str) -> int:
    """Until the file `end` is there."""
    (Path(place) / "pids").open("a").write(f"{os.getpid()}\n")
    while not (Path(place) / "end").exists():
        time.sleep(0.02)
    return os.getpid()


@app.task(time_limit=2)
def run_over_limit(place: str) -> None:
    wait(place)


@app.task
def grow_for_ever() -> None:
    data = []
    while True:
        data.append(b"1" * (8 << 20))
        time.sleep(0.005)


@app.task(jobmeter={"memory": "60m", "cpus": 1, "runtime": "10m"})
def use_more_than_requested() -> None:
    hold(100)


@app.task(jobmeter=False)
def not_measured() -> None:
    return None


@app.task
def start_jobs() -> str:
    """A job through the API of jobmeter, one through its command, a block."""
    import jobmeter

    with jobmeter.measure("part"):
        run = jobmeter.run([sys.executable, "-c", "pass"], name="by-api")
    command = [sys.executable, "-m", "jobmeter", "run", "--quiet", "--name", "by-command", "--", "true"]
    subprocess.run(command, check=True)
    return run.id


@app.task
def start_container(image: str, engine: str) -> str:
    import jobmeter

    options = jobmeter.ContainerOptions(image, engine=engine)
    return jobmeter.run(["sh", "-c", ":"], container=options, name="in-container").id


@app.task
def send_another() -> str:
    return str(add.apply_async((1, 2), queue=os.environ["QUEUE"]).id)


if os.environ.get("BAD_REQUIREMENT"):

    @app.task(jobmeter={"memory": "lots"})
    def requests_lots() -> str:
        return "done"
