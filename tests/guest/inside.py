"""What runs in the guest: every scenario in its turn, and what each found, on the console.

It runs as root, and knows the package under test only by its command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BEGIN = "<<<scenarios"
END = "scenarios>>>"
GROUPS = "/sys/fs/cgroup"
USER = 1000
JOBMETER = ("/usr/bin/python3", "-m", "jobmeter", "run")
LOAD = ("/usr/bin/python3", "/guest/load.py")
CONTROLLERS = ("memory", "cpu", "pids", "io")

Observation = dict[str, Any]


def idle() -> Observation:
    """Root, in the root group: an interpreter that does nothing, to compare with."""
    return meter("idle")


def burst() -> Observation:
    return meter("burst")


def overrun() -> Observation:
    return meter("overrun", "--memory", "40m", "--enforce")


def readers() -> Observation:
    return meter("readers")


def pressure() -> Observation:
    return meter("idle", "--measurements", "cgroup_*")


def squeezed() -> Observation:
    """More memory than the group around it may have without being slowed down (memory.high)."""
    with group("squeezed", owner=0):
        write(f"{GROUPS}/squeezed/memory.high", str(60 << 20))
        return meter("squeeze", inside="/squeezed")


def left_behind() -> Observation:
    observation = meter("leave", "--orphans", "leave")
    return observation | look_at_left(observation)


def delegated_alone() -> Observation:
    """jobmeter is the only process of a group that was given to its user."""
    with group("alone", owner=USER):
        return meter("burst", inside="/alone", user=USER) | {"handed_down": handed_down("/alone")}


def delegated_alone_leaving() -> Observation:
    """The same, with a process that the job leaves behind."""
    with group("leaving", owner=USER):
        observation = meter("leave", "--orphans", "leave", inside="/leaving", user=USER)
        return observation | look_at_left(observation)


def delegated_beside() -> Observation:
    """jobmeter and a shell share a group, within one that hands its controllers down."""
    with group("beside", owner=USER), group("beside/shell", owner=USER), sleeper("/beside/shell"):
        hand_down("/beside")
        return meter("burst", inside="/beside/shell", user=USER)


def delegated_crowded() -> Observation:
    """The user's group has other processes, so it can hand nothing down, and what is above is not the user's."""
    with group("crowded", owner=USER), sleeper("/crowded"):
        return meter("idle", inside="/crowded", user=USER)


def not_delegated() -> Observation:
    with group("plain", owner=0):
        return meter("burst", inside="/plain", user=USER)


def not_delegated_without_perf() -> Observation:
    """As on systems that give ordinary users no perf events."""
    with group("plain", owner=0):
        return meter("burst", "--measurements=-perf_*", inside="/plain", user=USER)


def root_group_without_perf() -> Observation:
    return meter("burst", "--measurements=-perf_*", user=USER)


def limited_crowded() -> Observation:
    """Root could make a group anywhere, but out of its own it would be out of its limit."""
    with group("limited", owner=0), sleeper("/limited"):
        write(f"{GROUPS}/limited/memory.max", str(500 << 20))
        return meter("idle", inside="/limited")


def nested() -> Observation:
    """A job that is itself a jobmeter with a job."""
    return meter("burst", through=(*JOBMETER, "--quiet", "--store", "/tmp/nested", "--"))


def nested_killed() -> Observation:
    """The same; the outer one kills the inner one before it can clean up."""
    inner = (*JOBMETER, "--quiet", "--store", "/tmp/nested", "--")
    return meter("overrun", "--memory", "40m", "--enforce", through=inner)


def two_at_once() -> Observation:
    """One process with two jobs; the one that ends first leaves the other its group."""
    with group("two", owner=USER):
        run = subprocess.run(
            ["/usr/bin/python3", "/guest/pair.py"], capture_output=True, text=True, check=False, timeout=60,
            preexec_fn=lambda: become(USER, "/two"),
        )  # fmt: skip
        if run.returncode != 0:
            raise ValueError(run.stderr)
        return {"records": json.loads(run.stdout)}


SCENARIOS = (
    idle, burst, overrun, readers, pressure, squeezed, left_behind,
    delegated_alone, delegated_alone_leaving, delegated_beside, delegated_crowded, not_delegated,
    not_delegated_without_perf, root_group_without_perf, limited_crowded, nested, nested_killed, two_at_once,
)  # fmt: skip


def meter(load: str, *options: str, inside: str = "/", user: int = 0, through: tuple[str, ...] = ()) -> Observation:
    """Run a load under jobmeter, as `user` in the group `inside`; `through` goes before its command."""
    directory = f"/tmp/{time.monotonic_ns()}"
    os.mkdir(directory)
    os.chown(directory, user, user)
    report, where = f"{directory}/record.json", f"{directory}/where"
    run = subprocess.run(
        [*JOBMETER, "--store", directory, "--report", report, *options, "--", *through, *LOAD, load, where],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        preexec_fn=lambda: become(user, inside),
    )  # fmt: skip
    observation: Observation = {"exit_code": run.returncode, "stderr": run.stderr}
    if not os.path.exists(report):
        raise ValueError(f"no report; exit code {run.returncode}\n{run.stdout}{run.stderr}")
    with open(report, encoding="utf-8") as file:
        observation["record"] = json.load(file)
    with open(where, encoding="ascii") as file:
        lines = file.read().splitlines()
    observation["group_of_job"], observation["group_of_meter"] = (line.partition("::")[2] for line in lines[:2])
    observation["left"] = [int(line) for line in lines[2:]]
    return observation


def become(user: int, inside: str) -> None:
    write(f"{GROUPS}{inside}/cgroup.procs", str(os.getpid()))
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def look_at_left(observation: Observation) -> Observation:
    """How the process that was left behind is doing; then end it."""
    (pid,) = observation["left"]
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        state = file.read().rpartition(")")[2].split()[0]
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
        inside = file.read().strip().partition("::")[2]
    os.kill(pid, signal.SIGKILL)
    return {"state_of_left": state, "group_of_left": inside}


@contextmanager
def group(name: str, *, owner: int) -> Iterator[None]:
    """A group that belongs to `owner`, as systemd delegates one: the directory and two of its files."""
    hand_down("")
    path = f"{GROUPS}/{name}"
    os.mkdir(path)
    for file in (path, f"{path}/cgroup.procs", f"{path}/cgroup.subtree_control"):
        os.chown(file, owner, owner)
    try:
        yield
    finally:
        remove(path)


def remove(path: str) -> None:
    """Remove a group once the processes in it are gone: one that was killed takes a moment."""
    deadline = time.monotonic() + 10
    while True:
        try:
            os.rmdir(path)
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextmanager
def sleeper(inside: str) -> Iterator[None]:
    process = subprocess.Popen(["/bin/sleep", "300"], preexec_fn=lambda: become(USER, inside))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def hand_down(inside: str) -> None:
    for controller in CONTROLLERS:
        write(f"{GROUPS}{inside}/cgroup.subtree_control", f"+{controller}")


def handed_down(inside: str) -> list[str]:
    with open(f"{GROUPS}{inside}/cgroup.subtree_control", encoding="ascii") as file:
        return file.read().split()


def made_groups() -> set[str]:
    """The groups that a jobmeter made."""
    return {f"{path}/{name}" for path, names, _ in os.walk(GROUPS) for name in names if name.startswith("jobmeter-")}


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def main() -> None:
    results: dict[str, Observation] = {}
    for scenario in SCENARIOS:
        print(scenario.__name__, flush=True)  # so that the console of a guest that hangs names it
        began, before = time.monotonic(), made_groups()
        try:
            observation = scenario()
        except (OSError, ValueError, subprocess.SubprocessError):
            observation = {"error": traceback.format_exc()}
        observation |= {"groups_left": sorted(made_groups() - before), "seconds": round(time.monotonic() - began, 1)}
        results[scenario.__name__] = observation
    print(f"\n{BEGIN}{json.dumps(results)}{END}", flush=True)


if __name__ == "__main__":
    main()
