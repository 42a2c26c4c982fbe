"""After the end of the job: a report that nobody reads, and processes that go on."""

from __future__ import annotations

import os
import pty
import random
import signal
import subprocess
import termios
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest

from tests.running import command_line, environment, interpreter, jobmeter, workplace
from tests.waiting import LONG, wait_for

GAP = 0.3
"""Seconds between two signals; two that come at once count as one."""


def started(arguments: Sequence[str], *, stderr: int | IO[str] = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command_line(arguments),
        env={**environment(), "HOME": workplace()}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
    )  # fmt: skip


def is_recorded(store: str) -> bool:
    return any(b'{"record"' in path.read_bytes() for path in Path(store).glob("journal/*"))


def end_by_signals(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> int:
    """Its exit code, after as many signals as it takes: two, unless the machine is busy."""
    for _ in range(round(LONG / GAP)):
        process.send_signal(number)
        try:
            return process.wait(GAP)
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    pytest.fail("no signal ends it")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_report_to_a_fifo_without_reader_is_given_up_at_the_second_signal(number: signal.Signals) -> None:
    folder = workplace()
    os.mkfifo(f"{folder}/fifo")
    process = started(
        ["run", "--quiet", "--store", f"{folder}/store", "--report", f"{folder}/fifo", "--", "sh", "-c", "exit 7"]
    )
    wait_for(lambda: is_recorded(f"{folder}/store"), "the run is recorded")
    assert end_by_signals(process, number) == 7


def test_a_summary_to_a_full_pipe_is_given_up_at_the_second_signal() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(write, b"x" * size)
        except BlockingIOError:
            pass
    os.set_blocking(write, True)
    store = workplace()
    process = started(["run", "--store", store, "--", "sh", "-c", "exit 7"], stderr=write)
    os.close(write)
    wait_for(lambda: is_recorded(store), "the run is recorded")
    assert end_by_signals(process) == 7
    os.close(read)


def test_a_summary_to_a_stopped_terminal_is_given_up_at_the_second_signal() -> None:
    master, slave = pty.openpty()
    termios.tcflow(slave, termios.TCOOFF)
    store = workplace()
    process = started(["run", "--store", store, "--", "sh", "-c", "exit 7"], stderr=slave)
    wait_for(lambda: is_recorded(store), "the run is recorded")
    assert end_by_signals(process) == 7
    os.close(slave)
    os.close(master)


def test_a_measuring_whose_report_nobody_reads_ends_at_the_second_signal() -> None:
    folder = workplace()
    os.mkfifo(f"{folder}/fifo")
    with subprocess.Popen(["sleep", str(LONG)]) as job:
        process = started(
            ["attach", "--quiet", "--store", f"{folder}/store", "--report", f"{folder}/fifo", str(job.pid)]
        )
        wait_for(lambda: bool(list(Path(folder, "store").glob("journal/*"))), "it is measured")
        assert end_by_signals(process) == 0
        job.kill()


def test_a_report_that_waits_for_its_reader_survives_one_signal() -> None:
    folder = workplace()
    os.mkfifo(f"{folder}/fifo")
    process = started(
        ["run", "--quiet", "--store", f"{folder}/store", "--report", f"{folder}/fifo", "--", "sh", "-c", "exit 7"]
    )
    wait_for(lambda: is_recorded(f"{folder}/store"), "the run is recorded")
    process.terminate()
    assert Path(folder, "fifo").read_text().startswith("{")
    assert process.wait(LONG) == 7


def test_signals_at_any_moment_end_a_run_whose_report_nobody_reads() -> None:
    folder = workplace()
    os.mkfifo(f"{folder}/fifo")
    chance = random.Random(8)

    def ending(delay: float) -> int:
        process = started(
            ["run", "--quiet", "--store", f"{folder}/store", "--report", f"{folder}/fifo", "--", "sh", "-c", "exit 7"]
        )
        time.sleep(delay)
        return end_by_signals(process)

    with ThreadPoolExecutor(4) as pool:
        codes = set(pool.map(ending, [chance.uniform(0, 0.4) for _ in range(50)]))
    # The job's; or the signal's, that reached jobmeter or the job before their work was done.
    assert codes <= {7, -signal.SIGTERM, 128 + signal.SIGTERM}


LEFT = "(trap '' HUP; until [ -e {0}/go ]; do sleep 0.02; done; echo late && echo late >&2 && : > {0}/survived) & "


def check_late_output(folder: str, output: IO[str]) -> None:
    Path(folder, "go").touch()
    wait_for(lambda: os.path.exists(f"{folder}/survived"), "what was left running writes, and goes on")
    assert output.read() == "early\nlate\n"  # also to where it always went
    wait_for(lambda: Path(folder, "out", "stdout").read_text() == "early\nlate\n", "it is in the file")
    wait_for(lambda: Path(folder, "out", "stderr").read_text() == "late\n", "it is in the file")


def test_what_a_captured_job_leaves_running_goes_on_writing() -> None:
    folder = workplace()
    words = ["run", "--quiet", "--store", folder, "--capture", f"{folder}/out", "--", "sh", "-c"]
    process = subprocess.Popen(
        command_line([*words, LEFT.format(folder) + "echo early; exit 3"]),
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.wait(LONG) == 3
    assert process.stdout is not None
    with process.stdout:
        check_late_output(folder, process.stdout)


def test_a_captured_job_whose_jobmeter_is_killed_goes_on_writing() -> None:
    folder = workplace()
    words = ["run", "--quiet", "--store", folder, "--capture", f"{folder}/out", "--", "sh", "-c"]
    process = subprocess.Popen(
        command_line([*words, "echo early; " + LEFT.format(folder) + "wait"]),
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    wait_for(lambda: os.path.exists(f"{folder}/out/stdout") and Path(folder, "out", "stdout").stat().st_size > 0, "it")
    process.kill()
    process.wait(LONG)
    assert process.stdout is not None
    with process.stdout:
        check_late_output(folder, process.stdout)


def test_what_copies_the_output_is_no_process_of_the_job() -> None:
    folder = workplace()
    # Its shepherd killed, the job is found by what became jobmeter's children.
    body = "kill -9 $PPID; sleep 0.3; exit 4"
    done = jobmeter(
        "run", "--quiet", "--store", folder, "--capture", f"{folder}/out", "--orphans", "end",
        "--", interpreter(), "-c", f"import os; os.execvp('sh', ['sh', '-c', '{body}; echo end'])",
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
