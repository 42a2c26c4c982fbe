"""The skeleton of a run: the same steps for every kind of job, and nothing left open on any path."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jobmeter.collectors.contract import Target
from jobmeter.errors import LaunchError
from jobmeter.journal.reader import read_journal
from jobmeter.launch.spawn import Streams
from jobmeter.meter.watch import Watch
from jobmeter.model import Outcome, Status
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.measuring import JobEnd, MeasureOptions, Measuring, OpenJob
from jobmeter.session.process import RunningProcess
from jobmeter.session.session import Session


class Block:
    """A job that is a piece of this program: nothing is launched, and it ends when `stop` is called."""

    in_container = False

    def __init__(self, fail_at: str = "", error: BaseException | None = None, waits: int = 1) -> None:
        self.steps: list[str] = []
        self._fail_at, self._error, self._failing_waits = fail_at, error or LaunchError("on purpose"), waits
        self._stopped = threading.Event()

    def prepare(self, measuring: Measuring) -> None:
        self._step("prepare")

    def open(self) -> OpenJob:
        self._step("open")
        target = Target(root=os.getpid(), main=os.getpid(), root_is_job=True)
        return OpenJob(target, [sys.executable], os.getcwd(), name="block")

    def run(self) -> None:
        self._step("run")

    def wait(self) -> None:
        if self._failing_waits > self.steps.count("wait"):
            self._step("wait")
        self._stopped.wait()

    def stop(self, *, at_once: bool) -> None:
        self.steps.append("stop at once" if at_once else "stop")
        self._stopped.set()

    def end(self) -> JobEnd:
        self._step("end")
        return JobEnd()

    def outcome(self) -> Outcome:
        self._step("outcome")
        return Outcome(Status.COMPLETED, 0)

    def close(self) -> None:
        self.steps.append("close")

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name == self._fail_at:
            raise self._error


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def journals(store: Path) -> list[Path]:
    return list((store / "journal").glob("*")) if (store / "journal").exists() else []


def measure_block(store: str) -> None:
    """Use 0.3 s of CPU in a block; print what was measured, and what this process used around it."""
    began = time.process_time()
    session = Session(Block(), MeasureOptions(store=store, interval=0.05))
    session.start()
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    session.stop()
    record = session.wait()
    assert ("block", "completed") == (record["name"], record["outcome"]["status"])
    (path,) = journals(Path(store))
    assert record == read_journal(str(path)).record
    print(record["usage"]["cpu_seconds"]["value"], time.process_time() - began)


def test_a_run_that_launches_nothing_is_measured_between_start_and_stop(tmp_path: Path) -> None:
    # A process of its own: that of the tests may have children that use CPU, which would count too.
    code = f"from tests.session.test_session import measure_block; measure_block({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "" == done.stderr
    used, around = map(float, done.stdout.split())
    assert 0.25 <= used <= around + 0.05


def test_every_step_is_taken_once_and_in_order() -> None:
    job = Block()
    session = Session(job)
    session.prepare()
    session.start()
    session.stop()
    session.wait()
    assert ["prepare", "open", "run", "stop", "wait", "end", "outcome", "close"] == job.steps


@pytest.mark.parametrize("step", ["open", "run"])
def test_a_start_that_fails_leaves_nothing(step: str, tmp_path: Path) -> None:
    before = open_descriptors()
    job = Block(step)
    with pytest.raises(LaunchError, match="on purpose"):
        Session(job, MeasureOptions(store=str(tmp_path))).start()
    assert "close" == job.steps[-1]
    assert (before, []) == (open_descriptors(), journals(tmp_path))


def test_a_job_that_never_began_has_no_record(tmp_path: Path) -> None:
    job = Block("wait")
    session = Session(job, MeasureOptions(store=str(tmp_path)))
    session.start()
    with pytest.raises(LaunchError, match="on purpose"):
        session.wait()
    assert ("close", []) == (job.steps[-1], journals(tmp_path))


def test_an_exception_while_waiting_stops_the_job_and_keeps_its_record(tmp_path: Path) -> None:
    job = Block("wait", KeyboardInterrupt())
    session = Session(job, MeasureOptions(store=str(tmp_path)))
    session.start()
    with pytest.raises(KeyboardInterrupt):
        session.wait()
    assert ["wait", "stop", "end", "outcome", "close"] == job.steps[3:]
    (path,) = journals(tmp_path)
    assert read_journal(str(path)).record is not None


def test_a_second_exception_allows_the_job_no_more_time() -> None:
    job = Block("wait", KeyboardInterrupt(), waits=2)
    session = Session(job)
    session.start()
    with pytest.raises(KeyboardInterrupt):
        session.wait()
    assert ["wait", "stop", "wait", "stop at once", "end", "outcome", "close"] == job.steps[3:]


@pytest.mark.parametrize("step", ["end", "outcome"])
def test_whatever_fails_at_the_end_everything_is_closed(step: str) -> None:
    before = open_descriptors()
    job = Block(step, OSError("on purpose"))
    session = Session(job)
    session.start()
    session.stop()
    with pytest.raises(OSError, match="on purpose"):
        session.wait()
    assert ("close", before) == (job.steps[-1], open_descriptors())


def test_a_stop_at_once_before_the_start_is_one_at_once() -> None:
    job = Block()
    session = Session(job)
    session.stop(at_once=True)
    session.stop()
    session.start()
    session.wait()
    assert ["prepare", "open", "run", "stop at once"] == job.steps[:4]


def test_a_stop_before_the_start_stops_it_then() -> None:
    job = Block()
    session = Session(job)
    session.stop()
    session.start()
    assert "completed" == session.wait()["outcome"]["status"]
    assert ["prepare", "open", "run", "stop"] == job.steps[:4]


def test_figures_that_cannot_be_made_cost_neither_the_exit_code_nor_the_record(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(watch: Watch) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(Watch, "summary", fail)
    warnings: list[str] = []
    job = LaunchedCommand(JobOptions(["sh", "-c", "exit 3"]))
    session = Session(job, MeasureOptions(store=str(tmp_path)), warn=warnings.append)
    session.start()
    record = session.wait()
    assert ("failed", 3, {}) == (record["outcome"]["status"], session.outcome.shell_code, record["usage"])
    assert "ZeroDivisionError: on purpose" == record["provenance"]["failed"]
    (path,) = journals(tmp_path)
    assert record == read_journal(str(path)).record
    assert ["ZeroDivisionError" in warning for warning in warnings] == [True]


def test_the_record_so_far_has_figures_and_no_end() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    ours, theirs = os.pipe()
    streams_in, streams_out = os.pipe()

    job = LaunchedCommand(JobOptions([sys.executable, "-c", burn], streams=Streams(streams_in, theirs)))
    session = Session(job, MeasureOptions(interval=0.05))
    session.start()
    os.close(theirs)
    os.read(ours, 1)  # it has used its CPU time
    deadline = time.monotonic() + 30
    while (record := session.record_so_far())["usage"].get("cpu_seconds", {"value": 0})["value"] < 0.3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert ("running", False) == (record["outcome"]["status"], "ended" in record)
    assert "at least" == record["usage"]["cpu_seconds"]["quality"]
    os.write(streams_out, b"\n")
    final = session.wait()
    for descriptor in (ours, streams_in, streams_out):
        os.close(descriptor)
    assert ("completed", record["id"]) == (final["outcome"]["status"], final["id"])
    assert final["usage"]["cpu_seconds"]["value"] >= record["usage"]["cpu_seconds"]["value"]


def test_ctrl_c_while_attached_from_python_leaves_the_process_and_a_final_record(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    session = Session(RunningProcess(process.pid), MeasureOptions(store=str(tmp_path)))
    session.start()
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        session.wait()
    assert process.poll() is None
    process.kill()
    process.wait()
    (path,) = journals(tmp_path)
    record = read_journal(str(path)).record
    assert record is not None
    assert "detached" == record["outcome"]["status"]
