"""Programs whose resource usage is known: `python3 benchmarks/loads.py NAME [DIRECTORY [SECONDS]]`.

Each reports what it really used, by its own accounting and not by that of any tool, in
lines of JSON that its processes append to `DIRECTORY/truth`. They import little and
run on the system's Python, so that another user may run them too.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable

MIB = 1 << 20
PYTHON = sys.executable or "/usr/bin/python3"
SHORT = f"{PYTHON} -I -S -c".split()
SHORT_BODY = "import time\nwhile time.process_time() < 0.02: pass"
ODD_NAME = "a) R 1 (b c"

_directory: str | None = None
_seconds = 3.0


def report(**truth: float) -> None:
    """Append a line to the truth. Of all lines, `cpu` is summed, every `pid` counts, and of other words the largest."""
    line = json.dumps(truth) + "\n"
    if _directory is None:
        print(line, end="", flush=True)
        return
    descriptor = os.open(f"{_directory}/truth", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def own_cpu(*, with_children: bool = False) -> float:
    whos = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) if with_children else (resource.RUSAGE_SELF,)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, whos))


def own_peak() -> int:
    """VmHWM of this process."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def share(pid: int) -> int:
    """PSS of a process."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def _spawn_short() -> int:
    return os.posix_spawn(SHORT[0], [*SHORT, SHORT_BODY], os.environ)


def short_sequential() -> None:
    """300 processes of some 20 ms of CPU, one after the other."""
    for _ in range(300):
        os.waitpid(_spawn_short(), 0)
    report(cpu=own_cpu(with_children=True))


def short_parallel() -> None:
    """300 processes of some 20 ms of CPU, four at a time."""
    running = 0
    for _ in range(300):
        if running == 4:
            os.wait()
            running -= 1
        _spawn_short()
        running += 1
    for _ in range(running):
        os.wait()
    report(cpu=own_cpu(with_children=True))


def unwaited() -> None:
    """50 children that nobody waits for: the kernel throws their accounts away."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(50):
        if os.fork() == 0:
            burn(0.06)
            report(cpu=own_cpu())
            os._exit(0)
    try:
        os.wait()  # returns when the last child has ended, and reports none of them
    except ChildProcessError:
        pass
    report(cpu=own_cpu())


def burst() -> None:
    """500 MiB for 0.3 s, then idle for 3 s."""
    block = b"x" * (500 * MIB)
    time.sleep(0.3)
    del block
    time.sleep(3)
    report(memory=own_peak())


def shared() -> None:
    """300 MiB of a parent that four forked children read."""
    block = b"x" * (300 * MIB)
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            block.count(b"y")
            time.sleep(3)
            os._exit(0)
        children.append(pid)
    time.sleep(2)
    report(memory=sum(map(share, [os.getpid(), *children])))
    for pid in children:
        os.waitpid(pid, 0)


def _daemon() -> int:
    """Start a daemon in a new session, of 2 s of CPU and 100 MiB, by two forks. Returns the pid of the first child."""
    first = os.fork()
    if first:
        return first
    os.setsid()
    if os.fork():
        os._exit(0)
    report(pid=os.getpid())
    block = b"x" * (100 * MIB)
    burn(2 - own_cpu())
    report(cpu=own_cpu(), memory=own_peak() if block else 0)
    os._exit(0)


def daemon_launcher_stays() -> None:
    """A daemon of 2 s of CPU and 100 MiB; who launched it stays for 4 s."""
    os.waitpid(_daemon(), 0)
    time.sleep(4)
    report(cpu=own_cpu(with_children=True))


def daemon_launcher_exits() -> None:
    """The same daemon; who launched it exits at once."""
    os.waitpid(_daemon(), 0)
    report(cpu=own_cpu(with_children=True))


def odd_name() -> None:
    """A child named `a) R 1 (b c` that burns 1 s."""
    pid = os.fork()
    if pid == 0:
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write(ODD_NAME)
        burn(1.0)
        time.sleep(0.5)
        os._exit(0)
    os.waitpid(pid, 0)
    report(cpu=own_cpu(with_children=True))


def sleepers(seconds: float = 3.0) -> None:
    """500 processes that sleep."""
    pids = [os.posix_spawn("/bin/sleep", ["sleep", "3600"], os.environ) for _ in range(500)]
    report(ready=1)
    time.sleep(seconds)
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    for pid in pids:
        os.waitpid(pid, 0)
    report(cpu=own_cpu(with_children=True))


def sleepers_long() -> None:
    """500 processes that sleep for 20 s."""
    sleepers(20.0)


def threads() -> None:
    """Four threads that keep two cores busy for 2 s."""
    import hashlib
    import threading

    block = b"x" * MIB
    end = time.monotonic() + 2

    def work() -> None:
        while time.monotonic() < end:
            hashlib.sha256(block)  # releases the GIL

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    report(cpu=own_cpu())


def write() -> None:
    """200 MiB written to a file and to its disk."""
    path = f"{_directory or '.'}/written"
    with open(path, "wb", buffering=0) as file:
        for _ in range(200):
            file.write(b"x" * MIB)
        os.fsync(file.fileno())
    os.unlink(path)
    time.sleep(1.2)
    report(written=200 * MIB)


def hang() -> None:
    """A process and its child that would stay for a minute, both named in the truth."""
    child = os.fork()
    report(pid=os.getpid())
    if child:
        report(ready=1)
    time.sleep(60)


def churn() -> None:
    """20,000 processes that come and go, 50 at a time."""
    report(pid=os.getpid())
    for _ in range(400):
        pids = []
        for _ in range(50):
            pid = os.fork()
            if pid == 0:
                time.sleep(0.002)
                os._exit(0)
            pids.append(pid)
        for pid in pids:
            os.waitpid(pid, 0)
    report(cpu=own_cpu(with_children=True))


def steady() -> None:
    """Two processes that compute and hold memory, in no regular way; for 6 s, or twice SECONDS."""
    child = os.fork()
    end = time.monotonic() + 2 * _seconds
    held = []
    while time.monotonic() < end:
        held.append(b"x" * (3 * MIB + 12345))
        del held[:-100]
        burn(0.07)
        time.sleep(0.05)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


class Course:
    """Memory that is held over time, as this process itself counts it: how much it held, and for how long."""

    _PIECE = 2 * MIB

    def __init__(self) -> None:
        self._began = self._changed = time.monotonic()
        self._held = self._most = 0
        self._byte_seconds = 0.0
        self._blocks: list[bytes] = []

    def take(self, size: int) -> None:
        """Hold `size` bytes more from now on; allocated in pieces, because that takes a while on a busy machine."""
        self._count(self._held)
        for _ in range(size // self._PIECE):
            self._blocks.append(b"x" * self._PIECE)
            self._held += self._PIECE
            self._count(self._held)
        self._most = max(self._held, self._most)

    def release(self) -> None:
        """Free everything."""
        self._count(self._held)
        while self._blocks:
            self._blocks.pop()
            self._held -= self._PIECE
            self._count(self._held)

    def until(self, share: float) -> None:
        """Sleep until this share of the whole time is over."""
        left = self._began + share * _seconds - time.monotonic()
        if left > 0:
            time.sleep(left)

    def end(self) -> None:
        """Free everything, and report what was held, and the memory of the interpreter itself."""
        self.release()
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file if line.endswith("kB\n")}
        report(
            byte_seconds=self._byte_seconds,
            seconds=time.monotonic() - self._began,
            most=self._most,
            resident=sizes["VmRSS"],
            shared_once=share(os.getpid()),
            charged=sizes["VmRSS"] - sizes["RssFile"] + sizes["VmPTE"],
        )

    def _count(self, size: float) -> None:
        now = time.monotonic()
        self._byte_seconds += size * (now - self._changed)
        self._changed = now


def level_constant() -> None:
    """200 MiB, all the time."""
    course = Course()
    course.take(200 * MIB)
    course.until(1.0)
    course.end()


def level_step_up() -> None:
    """200 MiB in the second half of the time."""
    course = Course()
    course.until(0.5)
    course.take(200 * MIB)
    course.until(1.0)
    course.end()


def level_step_down() -> None:
    """200 MiB in the first half of the time."""
    course = Course()
    course.take(200 * MIB)
    course.until(0.5)
    course.release()
    course.until(1.0)
    course.end()


def level_burst() -> None:
    """400 MiB for a twelfth of the time, and no less than 0.15 s."""
    course = Course()
    course.until(0.4)
    course.take(400 * MIB)
    course.until(0.4 + max(1 / 12, 0.15 / _seconds))
    course.release()
    course.until(1.0)
    course.end()


def level_ramp() -> None:
    """From nothing to 200 MiB, in a hundred steps."""
    course = Course()
    for step in range(100):
        course.take(2 * MIB)
        course.until((step + 1) / 100)
    course.end()


LOADS: dict[str, Callable[[], None]] = {
    load.__name__.replace("_", "-"): load
    for load in (
        short_sequential, short_parallel, unwaited, burst, shared, daemon_launcher_stays, daemon_launcher_exits,
        odd_name, sleepers, sleepers_long, threads, write, hang, churn, steady,
        level_constant, level_step_up, level_step_down, level_burst, level_ramp,
    )
}  # fmt: skip


def main(arguments: list[str]) -> int:
    global _directory, _seconds
    if not arguments or arguments[0] not in LOADS:
        for name, load in LOADS.items():
            print(f"{name:22} {load.__doc__}")
        return 2
    _directory = arguments[1] if len(arguments) > 1 else None
    _seconds = float(arguments[2]) if len(arguments) > 2 else _seconds
    LOADS[arguments[0]]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
