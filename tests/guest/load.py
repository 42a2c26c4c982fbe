"""Known loads for the guest: `python3 load.py NAME WHERE`.

The cgroups of the load and of its parent are written to the file WHERE.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

MIB = 1 << 20
PAGE = 4096


def idle() -> None:
    """An interpreter and no more."""
    time.sleep(0.2)


def squeeze() -> None:
    """Allocate beyond what is there, until half of the time was spent in waits, as the kernel counts them."""
    held: list[bytes] = []
    started = time.monotonic()
    while memory_waits() < 1 + (time.monotonic() - started) / 2 and len(held) < 800:
        held.append(b"x" * (128 << 10))


def memory_waits() -> float:
    """Seconds in which this cgroup waited for memory."""
    inside = cgroup_line("self").partition("::")[2].strip()
    with open(f"/sys/fs/cgroup{inside}/memory.pressure", encoding="ascii") as file:
        return int(file.readline().rpartition("total=")[2]) / 1e6


def burst() -> None:
    """100 MiB for a fifth of a second, then hardly any; half a second of CPU time."""
    while time.process_time() < 0.5:
        pass
    block = b"x" * (100 * MIB)
    time.sleep(0.2)
    del block
    time.sleep(1.5)


def overrun() -> None:
    """Far more than the limit of 40 MiB."""
    blocks = []
    for _ in range(200):
        blocks.append(b"x" * MIB)
        time.sleep(0.005)


def readers() -> None:
    """A parent of 60 MiB and four children that read all of it, all at once."""
    block = b"x" * (60 * MIB)
    for _ in range(4):
        if os.fork() == 0:
            pages = sum(block[::PAGE])
            time.sleep(1.0)
            os._exit(0 if pages else 1)
    for _ in range(4):
        os.wait()


def leave() -> None:
    """A process that goes on when the command has ended; its pid is the third line of WHERE."""
    left = subprocess.Popen(["/bin/sleep", "300"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(sys.argv[2], "a", encoding="ascii") as file:
        file.write(f"{left.pid}\n")
    left.returncode = 0  # nobody is to wait for it


def cgroup_line(process: object) -> str:
    with open(f"/proc/{process}/cgroup", encoding="ascii") as file:
        return file.read()


def main() -> None:
    _, name, where = sys.argv
    with open(where, "w", encoding="ascii") as file:
        file.writelines(cgroup_line(process) for process in ("self", os.getppid()))
    {load.__name__: load for load in (idle, burst, overrun, readers, leave, squeeze)}[name]()


if __name__ == "__main__":
    main()
