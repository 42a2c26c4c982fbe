"""What a process reads of itself, against what the kernel says elsewhere."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.own_process import (
    is_forked,
    own_usage,
    read_own_io,
    read_own_memory,
    read_own_resident,
    thread_count,
)
from jobmeter.kernel.procfs import read_io

QUESTION = "from jobmeter.kernel import machine, own_process; print(own_process.is_forked(machine.THIS_MACHINE))"


def test_a_copy_of_its_parent_is_distinguished_from_a_program() -> None:
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        assert pool.apply(is_forked, (THIS_MACHINE,))
    said = subprocess.run([sys.executable, "-c", QUESTION], capture_output=True, text=True, check=True)
    assert "False\n" == said.stdout


def test_disk_io_is_that_of_proc_with_children_that_were_waited_for(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.write(b"1" * 3_000_001)
        file.flush()
        os.fsync(file.fileno())
    subprocess.run(["dd", "if=/dev/zero", f"of={tmp_path}/other", "bs=1k", "count=333", "status=none"], check=True)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own, proc = read_own_io(THIS_MACHINE, own_usage(), children), read_io(THIS_MACHINE, os.getpid())
    assert own is not None
    assert (proc.read_bytes, proc.write_bytes) == tuple(own)


def test_threads_are_counted() -> None:
    before = thread_count(THIS_MACHINE)
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert before + 1 == thread_count(THIS_MACHINE)
    finally:
        end.set()
        thread.join()


def test_resident_memory_alone_is_that_of_the_status() -> None:
    held = bytearray(64 << 20)
    resident, memory = read_own_resident(THIS_MACHINE), read_own_memory(THIS_MACHINE)
    assert len(held) < resident
    assert abs(resident - memory.resident) < 4 << 20  # something may be allocated in between
