"""The time that threads waited for a CPU, from the files of a machine that has nothing but what they say."""

from __future__ import annotations

from pathlib import Path

from jobmeter.collectors.proc_delays import RunDelays
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.tree import Process, open_process
from tests.sysfs import process_line, write_files

PID = 20


def process(folder: Path, **files: str) -> tuple[Machine, Process]:
    """A process with one thread, which has these files."""
    write_files(folder, {f"{PID}/stat": process_line(PID, 1)})
    write_files(folder, {f"{PID}/task/{PID}/{name}": content for name, content in files.items()})
    machine = Machine(proc=str(folder))
    return machine, open_process(machine, PID, keep_open=False)


def test_on_a_kernel_that_does_not_count_waits_they_are_unknown_and_not_zero(tmp_path: Path) -> None:
    machine, one = process(tmp_path)
    assert RunDelays(machine).update([one]) is None


def test_waits_are_those_of_every_thread_and_may_be_zero(tmp_path: Path) -> None:
    machine, one = process(tmp_path, schedstat="5 0 1")
    delays = RunDelays(machine)
    assert 0.0 == delays.update([one])
    machine, again = process(tmp_path, schedstat="5 2000000000 1")
    assert 2.0 == delays.update([again])
