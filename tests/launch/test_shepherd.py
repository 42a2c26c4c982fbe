"""The shepherds, each by its protocol: the committed ones, one built anew, and the one in Python."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from jobmeter.launch.protocol import EXITED, FAILED, GO, READY, REAPED, SIZE, Message, unpack
from tests.parts import missing
from tests.running import ROOT

LAUNCH = Path(ROOT, "src", "jobmeter", "launch")


@functools.cache
def built_anew() -> str:
    """Both, by the Makefile; the folder. Skips the test where the compiler that it names is not there."""
    folder = tempfile.mkdtemp()
    for kind in ("x86_64", "aarch64"):
        words = ["make", "-s", f"build-shepherd-{kind}", f"SHEPHERDS={folder}"]
        built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        if built.returncode:
            if "needs " in built.stdout:
                missing(built.stdout.strip())
            pytest.fail(built.stderr)
    return folder


def start_of(kind: str) -> list[str]:
    """The words with which a shepherd of this kind begins."""
    if kind == "python":
        return [sys.executable, "-S", "-E", str(LAUNCH / "shepherd.py")]
    if kind == "built anew":
        return [f"{built_anew()}/shepherd-{os.uname().machine}"]
    binary = str(LAUNCH / f"shepherd-{kind}")
    if os.uname().machine == kind:
        return [binary]
    emulator = shutil.which(f"qemu-{kind}") or shutil.which(f"qemu-{kind}-static")
    if emulator is None:
        missing(f"needs qemu-user, to run a program for {kind}")
    return [emulator, binary]


class Flock:
    """A shepherd with its job, spoken to as spawn.py does."""

    def __init__(self, kind: str, *command: str, directory: str = "") -> None:
        control_read, self._control = os.pipe()
        self._status, status_write = os.pipe()
        words = [*start_of(kind), str(control_read), str(status_write), directory, command[0], *command]
        self.process = subprocess.Popen(words, pass_fds=(control_read, status_write), stdout=subprocess.PIPE)
        os.close(control_read)
        os.close(status_write)

    def hear(self) -> Message | None:
        data = os.read(self._status, SIZE)
        return unpack(data) if data else None

    def go(self) -> None:
        os.write(self._control, GO)

    def hang_up(self) -> None:
        os.close(self._control)
        os.close(self._status)

    def finish(self) -> bytes:
        os.write(self._control, GO)
        assert self.process.stdout is not None
        printed = self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait(10)
        self.hang_up()
        return printed


KINDS = pytest.mark.parametrize("kind", ["x86_64", "aarch64", "built anew", "python"])


@KINDS
def test_the_job_waits_before_its_exec_and_its_end_is_reported(kind: str) -> None:
    flock = Flock(kind, "/bin/sh", "-c", "echo through; exit 3")
    ready = flock.hear()
    assert ready is not None
    assert ready.kind == READY
    assert Path(f"/proc/{ready.pid}/stat").exists()
    flock.go()
    exited = flock.hear()
    assert exited is not None
    assert (EXITED, ready.pid) == exited[:2]
    assert " Z " in Path(f"/proc/{ready.pid}/stat").read_text()
    flock.go()
    reaped = flock.hear()
    assert reaped is not None
    assert (REAPED, ready.pid, 3) == (reaped.kind, reaped.pid, os.waitstatus_to_exitcode(reaped.value))
    assert reaped.maxrss_kib > 300
    assert flock.hear() is None
    assert flock.finish() == b"through\n"


# qemu-user does not hand prctl(PR_SET_CHILD_SUBREAPER) to the kernel, so not for another machine's.
@pytest.mark.parametrize("kind", [os.uname().machine, "built anew", "python"])
def test_orphans_are_adopted_and_reported(kind: str) -> None:
    flock = Flock(kind, "/bin/sh", "-c", "setsid sh -c 'sleep 0.4; exit 5' >/dev/null &")
    ready = flock.hear()
    flock.go()
    flock.hear()
    flock.go()
    messages = []
    while (message := flock.hear()) is not None:
        messages.append(message)
    assert ready is not None
    assert [0, 5] == [os.waitstatus_to_exitcode(message.value) for message in messages]
    assert messages[0].pid == ready.pid
    flock.finish()


@KINDS
def test_a_program_that_cannot_be_executed_is_reported_with_its_errno(kind: str) -> None:
    flock = Flock(kind, "/no/such/program")
    flock.hear()
    flock.go()
    failed = flock.hear()
    assert failed is not None
    assert (FAILED, 2) == (failed.kind, failed.value)
    flock.go()
    while flock.hear() is not None:
        pass
    flock.finish()


@KINDS
def test_the_job_runs_in_the_requested_directory(kind: str, tmp_path: Path) -> None:
    flock = Flock(kind, "/bin/pwd", directory=str(tmp_path))
    flock.hear()
    flock.go()
    flock.hear()
    flock.go()
    while flock.hear() is not None:
        pass
    assert flock.finish() == f"{tmp_path}\n".encode()


@KINDS
def test_a_job_whose_jobmeter_died_before_the_gate_never_runs(kind: str, tmp_path: Path) -> None:
    flock = Flock(kind, "/bin/sh", "-c", f": > {tmp_path}/ran")
    flock.hear()
    flock.hang_up()
    flock.process.wait(10)
    assert not (tmp_path / "ran").exists()
    assert flock.process.stdout is not None
    flock.process.stdout.close()


@KINDS
def test_a_job_whose_jobmeter_died_later_goes_on_and_the_shepherd_leaves_with_it(kind: str, tmp_path: Path) -> None:
    flock = Flock(kind, "/bin/sh", "-c", f"sleep 0.5; : > {tmp_path}/ran")
    flock.hear()
    flock.go()
    time.sleep(0.1)
    flock.hang_up()
    flock.process.wait(10)
    assert (tmp_path / "ran").exists()
    assert flock.process.stdout is not None
    flock.process.stdout.close()


@KINDS
def test_signals_that_end_jobs_do_not_end_the_shepherd(kind: str) -> None:
    flock = Flock(kind, "/bin/sleep", "0.5")
    flock.hear()
    flock.go()
    time.sleep(0.2)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        flock.process.send_signal(number)
    assert flock.hear() is not None
    flock.go()
    while flock.hear() is not None:
        pass
    flock.finish()
    assert flock.process.returncode == 0


def test_a_process_begins_at_the_size_of_the_compiled_shepherd() -> None:
    flock = Flock(os.uname().machine, "/bin/true")
    flock.hear()
    status = Path(f"/proc/{flock.process.pid}/status").read_text()
    flock.go()
    flock.hear()
    flock.go()
    while flock.hear() is not None:
        pass
    flock.finish()
    (size,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    assert int(size) < 200


def test_the_committed_shepherds_were_built_from_the_committed_source() -> None:
    digest, name = (LAUNCH / "shepherd.built-from").read_text().split()
    assert hashlib.sha256((LAUNCH / name).read_bytes()).hexdigest() == digest, "make shepherd"


@pytest.mark.parametrize("kind", ["x86_64", "aarch64"])
def test_a_committed_shepherd_is_byte_for_byte_what_its_source_compiles_to(kind: str) -> None:
    name = f"shepherd-{kind}"
    assert Path(built_anew(), name).read_bytes() == (LAUNCH / name).read_bytes(), "make shepherd"


def test_another_compiler_than_the_named_one_is_reported(tmp_path: Path) -> None:
    words = ["make", "-s", "check-shepherd", f"REBUILT={tmp_path}", "SHEPHERD_GCC=1.2.3"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "shepherd-x86_64: needs " in done.stdout
    assert " 1.2.3, here it is " in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ignored", [False, True], ids=["heeded", "ignored"])
@KINDS
def test_children_that_the_caller_ignores_are_ignored_by_the_job_alone(kind: str, ignored: bool) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        flock = Flock(kind, "/bin/grep", "SigIgn", "/proc/self/status")
    finally:
        signal.signal(signal.SIGCHLD, before)
    flock.hear()
    flock.go()
    exited = flock.hear()  # so it could wait for its child
    assert exited is not None
    assert exited.kind == EXITED
    flock.go()
    while flock.hear() is not None:
        pass
    signals = int(flock.finish().split()[1], 16)
    assert ignored == bool(signals >> (signal.SIGCHLD - 1) & 1)
