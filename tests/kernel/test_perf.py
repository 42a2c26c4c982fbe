from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobmeter.errors import NoData
from jobmeter.kernel import perf
from jobmeter.kernel.hostfs import read_cpu_time
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.launch import protocol
from jobmeter.launch.spawn import LaunchedJob, spawn
from tests.parts import unless


def _why_not() -> str:
    try:
        perf.open_event("task_clock", os.getpid()).close()
    except NoData as reason:
        return str(reason)
    return ""


needs_perf = unless(_why_not())


@contextlib.contextmanager
def held_before_exec(program: str) -> Iterator[LaunchedJob]:
    launched = spawn([sys.executable, "-c", program], environment=dict(os.environ))
    try:
        yield launched
    finally:
        launched.close()


def see_through(launched: LaunchedJob) -> list[protocol.Message]:
    """Open the gate; what the shepherd reported of each process it waited for."""
    reaped = []
    launched.execute()
    with contextlib.suppress(EOFError):
        while True:
            message = launched.next_message(30)
            assert message is not None
            if message.kind == protocol.EXITED:
                launched.may_be_reaped()
            elif message.kind == protocol.REAPED:
                reaped.append(message)
    return reaped


def cpu_seconds(reaped: list[protocol.Message]) -> float:
    return sum(message.user_us + message.system_us for message in reaped) / 1e6


@needs_perf
def test_task_clock_of_a_child_that_burns_cpu_is_its_rusage() -> None:
    with held_before_exec("import time\nwhile time.process_time() < 0.8: pass") as launched:
        event = perf.open_event("task_clock", launched.main)
        at_the_gate = event.read()
        before = read_cpu_time(THIS_MACHINE).stolen
        reaped = see_through(launched)
        seconds = event.read() / 1e9
        event.close()
        stolen = read_cpu_time(THIS_MACHINE).stolen - before
    assert 0 == at_the_gate
    # Its clock goes on while a hypervisor has the CPU.
    assert 0.97 * cpu_seconds(reaped) <= seconds <= 1.03 * cpu_seconds(reaped) + stolen + 0.02


CHILD_NOBODY_WAITS_FOR = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
read, write = os.pipe()
if os.fork() == 0:
    os.close(read)
    while time.process_time() < 0.4: pass
    os._exit(0)
os.close(write)
os.read(read, 1)
"""


@needs_perf
def test_cpu_of_a_child_nobody_waited_for_is_counted() -> None:
    with held_before_exec(CHILD_NOBODY_WAITS_FOR) as launched:
        event = perf.open_event("task_clock", launched.main)
        reaped = see_through(launched)
        seconds = event.read() / 1e9
        event.close()
    assert cpu_seconds(reaped) < 0.3
    assert 0.4 <= seconds < 0.7


@needs_perf
def test_page_faults_show_the_memory_that_was_touched() -> None:
    counts = []
    # Below the size that the C library takes from fresh maps, so that huge pages play no part.
    for program in ("pass", "held = [bytearray(50_000) for _ in range(1000)]"):
        with held_before_exec(program) as launched:
            event = perf.open_event("page_faults", launched.main)
            see_through(launched)
            counts.append(event.read())
            event.close()
    bare, touching = counts
    assert touching - bare > 1000


@needs_perf
def test_a_process_that_is_gone_gives_no_data_and_a_reason() -> None:
    with held_before_exec("pass") as launched:
        gone = launched.main
        see_through(launched)
    with pytest.raises(NoData, match="No such process"):
        perf.open_event("task_clock", gone)
    with pytest.raises(NoData, match="No such process"):
        perf.open_event("task_clock", gone, gone)


@pytest.mark.parametrize(("content", "expected"), [("2\n", 2), ("-1\n", -1), ("what\n", None), (None, None)])
def test_the_paranoid_level_is_the_kernel_s_or_unknown(
    tmp_path: Path, content: str | None, expected: int | None
) -> None:
    (tmp_path / "sys/kernel").mkdir(parents=True)
    if content is not None:
        (tmp_path / "sys/kernel/perf_event_paranoid").write_text(content)
    assert expected == perf.paranoid_level(Machine(proc=str(tmp_path)))


@needs_perf
def test_an_event_that_is_not_inherited_counts_the_thread_alone() -> None:
    def burn() -> None:
        began = time.thread_time()
        while time.thread_time() - began < 0.1:
            pass

    here = threading.get_native_id()
    inherited, own = (perf.open_event("task_clock", here, at_exec=False, inherit=inherit) for inherit in (True, False))
    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()
    alone, both = (event.read() / 1e9 for event in (own, inherited))  # what this thread uses in between is in both
    for event in (inherited, own):
        event.close()
    assert alone < 0.1 <= both - alone
