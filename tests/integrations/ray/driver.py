"""A driver of Ray whose tasks and actors are measured. Prints what they returned, as JSON."""

# Ray's decorators say nothing of what they make of a function or a class.
# mypy: disable-error-code="untyped-decorator, attr-defined"

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import ray

from jobmeter.integrations.ray import install, measured


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def used() -> float:
    """CPU seconds of this thread, and of children that were waited for; other threads are Ray's and the meter's."""
    kinds = (resource.RUSAGE_THREAD, resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, kinds))


@ray.remote
@measured
def subprocesses(count: int) -> float:
    """What they really used."""
    before = used()
    for _ in range(count):
        subprocess.run(["sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done"], check=True)
    return used() - before


@ray.remote(num_cpus=1, memory=100 << 20)
@measured(labels={"team": "a"})
def labelled() -> str:
    return str(ray.get_runtime_context().get_task_id())


@ray.remote
@measured
def fails() -> None:
    raise ValueError("on purpose")


@ray.remote(max_retries=0)
@measured
def killed() -> None:
    os.kill(os.getpid(), 9)


@ray.remote
@measured
def yields() -> Iterator[int]:
    for number in range(3):
        burn(0.1)
        yield number


@ray.remote
@measured(store="/proc/no/such/store")
def unmeasured() -> str:
    return "done"


@ray.remote
@measured
class Counter:
    def __init__(self) -> None:
        self.number = 0

    def add(self, seconds: float) -> int:
        burn(seconds)
        self.number += 1
        return self.number


@ray.remote(concurrency_groups={"io": 2, "compute": 2})
@measured
class Groups:
    @ray.method(concurrency_group="compute")
    def work(self, seconds: float) -> None:
        burn(seconds)

    @ray.method(concurrency_group="io")
    def rest(self, seconds: float) -> None:
        time.sleep(seconds)


@ray.remote
@measured
class Turns:
    async def work(self, seconds: float) -> None:
        for _ in range(10):
            burn(seconds / 10)
            await asyncio.sleep(0.01)

    async def items(self) -> AsyncIterator[int]:
        for number in range(2):
            await asyncio.sleep(0.01)
            yield number


@ray.remote
def plain() -> str:
    return str(ray.get(nested.remote()))


@ray.remote
def nested() -> str:
    return "nested"


@ray.remote
class Plain:
    def method(self) -> int:
        return 1


def main(address: str) -> dict[str, Any]:
    ray.init(address, log_to_driver=False, logging_level="ERROR")
    said: dict[str, Any] = {"subprocesses": ray.get(subprocesses.remote(400)), "labelled": ray.get(labelled.remote())}
    for name, task in (("fails", fails), ("killed", killed)):
        try:
            ray.get(task.remote())
        except Exception as error:  # noqa: BLE001
            said[name] = type(error).__name__
    said["yields"] = [ray.get(ref) for ref in yields.remote()]
    said["unmeasured"] = ray.get(unmeasured.remote())
    counter = Counter.options(name="the-counter").remote()
    said["counter"] = [ray.get(counter.add.remote(0.2)) for _ in range(2)]
    said["actor"] = counter._actor_id.hex()
    groups = Groups.remote()
    ray.get([groups.work.remote(0.4), groups.work.remote(0.2), groups.rest.remote(0.5)])
    turns = Turns.remote()
    ray.get([turns.work.remote(0.4), turns.work.remote(0.2)])
    said["items"] = [ray.get(ref) for ref in turns.items.remote()]
    install(labels={"by": "install"})
    said["plain"] = ray.get(plain.remote())
    said["method"] = ray.get(Plain.remote().method.remote())
    return said


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
